package jobs

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"creel/config"
)

const (
	// leastDelay and mostDelay bound a slot that an owner writes.
	leastDelay = time.Millisecond
	mostDelay  = 31 * 24 * time.Hour
)

// CompilePolicies returns the built-in retry policies and those of the
// configuration's [retry.NAME] tables. A built-in one can not be redefined:
// its name means the same everywhere.
func CompilePolicies(retries map[string]config.Retry) (map[string]Policy, config.Problems) {
	policies := BuiltInPolicies()
	var problems config.Problems
	for _, name := range slices.Sorted(maps.Keys(retries)) {
		c := policyCompiler{prefix: config.Join("retry", name)}
		if _, taken := policies[name]; taken {
			c.fault("", "this name belongs to a built-in policy", "give yours another name")
		}
		policy := c.policy(name, retries[name])
		if len(c.problems) == 0 {
			policies[name] = policy
		}
		problems = append(problems, c.problems...)
	}
	return policies, problems
}

// PolicyOf finds the policy that a configuration names at key; "" is the
// default one.
func PolicyOf(policies map[string]Policy, name, key string) (Policy, config.Problems) {
	if name == "" {
		name = PolicyDefault
	}
	if policy, ok := policies[name]; ok {
		return policy, nil
	}
	return Policy{}, config.Problems{{Path: key, Message: fmt.Sprintf("there is no retry policy %q", name),
		Hint: fmt.Sprintf("there are %q; a [retry.%s] table makes another", slices.Sorted(maps.Keys(policies)), name)}}
}

type policyCompiler struct {
	prefix   string
	problems config.Problems
}

func (c *policyCompiler) fault(key, message, hint string) {
	path := c.prefix
	if key != "" {
		path += "." + key
	}
	c.problems = append(c.problems, config.Problem{Path: path, Message: message, Hint: hint})
}

func (c *policyCompiler) policy(name string, retry config.Retry) Policy {
	grows := retry.First != 0 || retry.Factor != 0 || retry.Max != 0 || retry.Attempts != 0
	switch {
	case len(retry.Delays) > 0 && grows:
		c.fault("delays", "the policy has both a list of delays and a growing one", "keep delays, or first, factor, max and attempts")
	case len(retry.Delays) > 0:
		return c.listed(name, retry)
	case grows:
		return c.grown(name, retry)
	default:
		c.fault("", "the policy has no delays", `write delays = ["5s", "1m"], or first, factor, max and attempts`)
	}
	return Policy{}
}

func (c *policyCompiler) listed(name string, retry config.Retry) Policy {
	if len(retry.Delays) >= maxAttempts {
		c.fault("delays", fmt.Sprintf("the list has more than %d delays", maxAttempts-1), "")
	}
	delays := make([]time.Duration, len(retry.Delays))
	for i, delay := range retry.Delays {
		c.slot(config.Item("delays", i), delay)
		delays[i] = time.Duration(delay)
	}
	return policyOf(name, retry.Retry4xx, delays...)
}

func (c *policyCompiler) grown(name string, retry config.Retry) Policy {
	c.slot("first", retry.First)
	factor, most := retry.Factor, time.Duration(retry.Max)
	if factor == 0 {
		factor = 2
	}
	if most == 0 {
		most = mostDelay
	}
	switch {
	case !(factor >= 1 && factor <= 1000):
		c.fault("factor", "the factor is not between 1 and 1000", "the default is 2")
	case most < time.Duration(retry.First) || most > mostDelay:
		c.fault("max", fmt.Sprintf("the longest delay is not between first and %s", mostDelay), "")
	case retry.Attempts < 1 || retry.Attempts > maxAttempts:
		c.fault("attempts", fmt.Sprintf("%d is not between 1 and %d", retry.Attempts, maxAttempts), "the first attempt counts")
	}
	if len(c.problems) > 0 {
		return Policy{}
	}
	return policyOf(name, retry.Retry4xx, growing(time.Duration(retry.First), factor, most, retry.Attempts-1)...)
}

func (c *policyCompiler) slot(key string, delay config.Duration) {
	if d := time.Duration(delay); d < leastDelay || d > mostDelay {
		c.fault(key, fmt.Sprintf("the delay is not between %s and %s", leastDelay, mostDelay), `write it with its unit, as "5s"`)
	}
}
