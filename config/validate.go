package config

import (
	"fmt"
	"net"
	"net/mail"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// validator checks what values say together: addresses, names, references.
type validator struct {
	cfg      *Config
	bad      map[string]bool // key paths that were reported already
	problems Problems
}

func validate(cfg *Config, bad map[string]bool) Problems {
	v := &validator{cfg: cfg, bad: bad}
	v.frame()
	for i := range cfg.Sources {
		v.source(Item("source", i), &cfg.Sources[i])
	}
	v.sourceNames()
	for i := range cfg.Rules {
		v.rule(Item("rule", i), &cfg.Rules[i])
	}
	v.ruleNames()
	for _, name := range sortedKeys(cfg.Destinations) {
		v.destination(name, cfg.Destinations[name])
	}
	for _, name := range sortedKeys(cfg.Retries) {
		v.retry(name, cfg.Retries[name])
	}
	v.unused()
	return v.problems
}

// told tells whether a value, or a table around it, was reported already.
// mostBody is the memory that all bodies before verification may hold
// together, in bytes: a single larger one could never come in.
const mostBody = 64 << 20

func (v *validator) told(at string) bool {
	for ; at != ""; at = parent(at) {
		if v.bad[at] {
			return true
		}
	}
	return false
}

func (v *validator) fault(at, message, hint string) {
	if !v.told(at) {
		v.problems = append(v.problems, Problem{Path: at, Message: message, Hint: hint})
	}
}

func (v *validator) warn(at, message, hint string) {
	if !v.told(at) {
		v.problems = append(v.problems, Problem{Path: at, Message: message, Hint: hint, Warning: true})
	}
}

func (v *validator) frame() {
	cfg := v.cfg
	v.listen("listen", cfg.Listen)
	v.listen("admin.listen", cfg.Admin.Listen)
	if sameAddress(cfg.Listen, cfg.Admin.Listen) {
		at := "admin.listen"
		if cfg.Admin.Listen == Default().Admin.Listen {
			at = "listen" // the one that somebody wrote
		}
		v.fault(at, fmt.Sprintf("%q and %q can not stand side by side", cfg.Listen, cfg.Admin.Listen),
			"senders and the page have listeners of their own, on two ports")
	}
	if cfg.Database == "" {
		v.fault("database", "is empty", `name the file, such as "creel.db"`)
	}
	v.publicURL("public_url", cfg.PublicURL)
	v.publicURL("admin.public_url", cfg.Admin.PublicURL)
	for i, text := range cfg.TrustedProxies {
		v.cidr(Item("trusted_proxies", i), text)
	}
	if free := cfg.Signals.DiskFree; free > 0 && free <= cfg.MinFree {
		v.warn("signals.disk_free", fmt.Sprintf("is not over min_free (%s): senders get 503 before anybody is told that the disk fills", cfg.MinFree),
			"several times min_free leaves time to make room")
	}
	v.retryName("worker.retry", cfg.Worker.Retry)
	if cfg.SMTP.Host != "" {
		v.address("smtp.host", cfg.SMTP.Host, `"127.0.0.1:587"`)
	}
	v.retryName("smtp.retry", cfg.SMTP.Retry)
	if _, err := mail.ParseAddress(cfg.SMTP.From); cfg.SMTP.From != "" && err != nil {
		v.fault("smtp.from", strconv.Quote(cfg.SMTP.From)+" is not a mail address", `write "creel@example.com" or "Creel <creel@example.com>"`)
	}
	v.alerts()
}

func (v *validator) listen(path, text string) {
	if _, err := strconv.Atoi(text); err == nil && text != "" {
		v.fault(path, strconv.Quote(text)+" is not an address", fmt.Sprintf("write \"127.0.0.1:%s\" for this machine only or \":%s\" for every interface", text, text))
		return
	}
	v.address(path, text, `"127.0.0.1:8080" or ":8080"`)
}

// address checks host:port.
func (v *validator) address(path, text, example string) {
	host, port, err := net.SplitHostPort(text)
	hint := "write host:port, such as " + example
	if err != nil {
		v.fault(path, strconv.Quote(text)+" is not an address", hint)
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		v.fault(path, strconv.Quote(text)+" has no valid port", "a port is a number from 0 to 65535")
		return
	}
	if _, err := netip.ParseAddr(host); err != nil && host != "" && !hostName.MatchString(host) {
		v.fault(path, strconv.Quote(text)+" has no valid host", hint)
	}
}

// sameAddress tells whether two listeners can not stand side by side.
func sameAddress(a, b string) bool {
	hostA, portA, errA := net.SplitHostPort(a)
	hostB, portB, errB := net.SplitHostPort(b)
	if errA != nil || errB != nil || portA != portB || portA == "0" {
		return false
	}
	every := []string{"", "0.0.0.0", "::"}
	return hostA == hostB || slices.Contains(every, hostA) || slices.Contains(every, hostB)
}

var (
	hostName   = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]{0,251}[A-Za-z0-9])?$`)
	sourceName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	plainName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
)

func (v *validator) cidr(path, text string) {
	prefix, err := netip.ParsePrefix(text)
	if err != nil {
		hint := `write "10.0.0.0/8"`
		if addr, err := netip.ParseAddr(text); err == nil {
			hint = fmt.Sprintf("write \"%s/%d\"", text, addr.BitLen())
		}
		v.fault(path, strconv.Quote(text)+" is not a network", hint)
		return
	}
	if prefix.Bits() == 0 {
		v.warn(path, "trusts everybody: any sender can write the address that logs show", "name the network of your proxy")
	}
}

// publicURL checks a URL that others call, where one is given.
func (v *validator) publicURL(path, text string) {
	if text == "" {
		return
	}
	u := v.webURL(path, text, `"https://hooks.example.com"`)
	if u != nil && (u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
		v.fault(path, "has a query, a fragment or a user", `write the address only, such as "https://hooks.example.com"`)
	}
}

// webURL checks an absolute http or https URL. Its text is never repeated:
// user, path and query of a URL may be secrets.
func (v *validator) webURL(path, text, example string) *url.URL {
	hint := "write " + example
	u, err := url.Parse(text)
	switch {
	case err != nil:
		v.fault(path, "is not a URL", hint)
	case u.Scheme == "":
		v.fault(path, "has no scheme", hint)
	case u.Scheme != "http" && u.Scheme != "https":
		v.fault(path, "must begin with http:// or https://", hint)
	case u.Hostname() == "":
		v.fault(path, "has no host", hint)
	case u.Port() != "" && !validPort(u.Port()):
		v.fault(path, "has no valid port", "a port is a number from 1 to 65535")
	default:
		return u
	}
	return nil
}

func validPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && n <= 65535
}

func (v *validator) source(at string, s *Source) {
	switch {
	case s.Name == "":
		v.fault(Join(at, "name"), "is missing", `every [[source]] has a name, such as name = "stripe" for POST /in/stripe`)
	case !sourceName.MatchString(s.Name):
		v.fault(Join(at, "name"), strconv.Quote(s.Name)+" can not stand in a URL", "use up to 64 letters, digits, dots, underscores and hyphens, a letter or digit first")
	}
	if s.Provider == "" && s.Verify == nil {
		v.fault(Join(at, "provider"), "is missing", `name a preset (creel providers lists them) or write [source.verify] for your own`)
	}
	if s.MaxBody > mostBody {
		v.fault(Join(at, "max_body"), "is more than all requests together may hold", `write at most "64MiB"`)
	}
	if s.PublicURL != "" {
		v.webURL(Join(at, "public_url"), s.PublicURL, `"https://hooks.example.com/in/`+s.Name+`"`)
	}
	v.to(Join(at, "forward"), s.Forward, ToURL)
}

func (v *validator) sourceNames() {
	first := map[string]int{}
	for i, s := range v.cfg.Sources {
		at := Join(Item("source", i), "name")
		same := slices.IndexFunc(v.cfg.Sources[:i], func(o Source) bool { return strings.EqualFold(o.Name, s.Name) })
		if n, ok := first[s.Name]; ok && s.Name != "" {
			v.fault(at, fmt.Sprintf("%q is the name of source[%d] already", s.Name, n), "every source has a name of its own; one source may have several secrets")
			continue
		}
		if same >= 0 && s.Name != "" {
			v.warn(at, fmt.Sprintf("%q and %q differ by letter case only", v.cfg.Sources[same].Name, s.Name), "they are two sources: names are compared exactly")
		}
		first[s.Name] = i
	}
}

func (v *validator) rule(at string, r *Rule) {
	if strings.TrimSpace(r.Name) == "" {
		v.fault(Join(at, "name"), "is missing", "a rule's name is its identity: it stands in verdicts, and keys are made of it")
	}
	for i, pattern := range r.Match.Source {
		v.matched(Join(at, "match", "source"), i, len(r.Match.Source), pattern)
	}
	for i, pattern := range r.Match.Types {
		if pattern == "" {
			v.fault(Item(Join(at, "match", "types"), i), "is empty", `write "*" for all, or a type such as "invoice.*"`)
		}
	}
	v.effects(at, r)
	if r.Forward != nil {
		to := Join(at, "forward", "to")
		if len(r.Forward.To) == 0 {
			v.fault(to, "is missing", `name a destination, such as to = "app"`)
		}
		v.to(to, r.Forward.To, ToURL)
	}
	if r.Run != nil {
		v.run(Join(at, "run"), r.Run)
	}
	if r.File != nil {
		v.file(Join(at, "file"), r.File)
	}
}

// matched checks a rule's reference to a source. Whether a pattern matches
// one is asked where patterns are understood.
func (v *validator) matched(list string, i, n int, pattern string) {
	at := list
	if n > 1 {
		at = Item(list, i)
	}
	var names []string
	for i, s := range v.cfg.Sources {
		if v.told(Join(Item("source", i), "name")) {
			return // the name that is meant may be the one that could not be read
		}
		names = append(names, s.Name)
	}
	switch {
	case pattern == "":
		v.fault(at, "is empty", `write "*" for all`)
	case !strings.ContainsAny(pattern, "*?"):
		v.reference(at, "source", pattern, names)
	}
}

func (v *validator) ruleNames() {
	first := map[string]int{}
	for i, r := range v.cfg.Rules {
		if n, ok := first[r.Name]; ok && r.Name != "" {
			v.fault(Join(Item("rule", i), "name"), fmt.Sprintf("%q is the name of rule[%d] already", r.Name, n), "every rule has a name of its own: keys are made of it")
			continue
		}
		first[r.Name] = i
	}
}

// destinations checks a list of references to destinations.
func (v *validator) destinations(list string, names StringList) {
	for i, name := range names {
		at := list
		if len(names) > 1 {
			at = Item(list, i)
		}
		if slices.Index(names, name) < i {
			v.fault(at, strconv.Quote(name)+" is named twice", "one event makes one delivery to each destination")
			continue
		}
		v.reference(at, "destination", name, sortedKeys(v.cfg.Destinations))
	}
}

// reference checks that a name exists.
func (v *validator) reference(at, kind, name string, names []string) {
	if slices.Contains(names, name) {
		return
	}
	hint := "there is none yet"
	if near := Nearest(name, names); near != "" {
		hint = "did you mean " + near + "?"
	} else if len(names) > 0 {
		hint = "known: " + strings.Join(names, ", ")
	} else if kind == "destination" {
		hint = "there is none yet: write [destination." + name + "] with a url"
	}
	v.fault(at, fmt.Sprintf("there is no %s %q", kind, name), hint)
}

// name checks a name that stands in key paths, metrics and the page.
func (v *validator) name(at, name string) {
	if !plainName.MatchString(name) {
		v.fault(at, strconv.Quote(name)+" is not a name", "use up to 64 letters, digits, underscores and hyphens, a letter or digit first")
	}
}

func (v *validator) retryName(at, name string) {
	names := append(RetryNames(), sortedKeys(v.cfg.Retries)...)
	slices.Sort(names)
	v.reference(at, "retry policy", name, slices.Compact(names))
}

func (v *validator) retry(name string, r Retry) {
	at := Join("retry", name)
	v.name(at, name)
	switch {
	case slices.Contains(RetryNames(), name):
		v.fault(at, strconv.Quote(name)+" is the name of a built-in policy", "choose another name")
	case len(r.Delays) > 0 && (r.First > 0 || r.Attempts > 0 || r.Factor > 0 || r.Max > 0):
		v.fault(at, "has a list of delays and a growing one", "write either delays = [\"5s\", \"1m\"], which make one attempt more than there are delays, or first, factor, max and attempts")
	case len(r.Delays) == 0 && r.First == 0 && !v.bad[Join(at, "first")] && !v.badBelow(Join(at, "delays")):
		v.fault(at, "has neither delays nor first", `write delays = ["5s", "1m"], or first = "5s" and attempts = 6`)
	case len(r.Delays) == 0 && r.Attempts == 0:
		v.fault(Join(at, "attempts"), "is missing", "say when to give up, such as attempts = 6")
	case len(r.Delays) == 0 && r.Max < r.First:
		v.fault(Join(at, "max"), fmt.Sprintf("%s is less than first, %s", r.Max, r.First), "max is the longest delay")
	}
}

func (v *validator) badBelow(prefix string) bool {
	for at := range v.bad {
		if strings.HasPrefix(at, prefix) {
			return true
		}
	}
	return false
}

// troubled tells whether anything is wrong with a value, within it, or with a
// key that begins as it does.
func (v *validator) troubled(at string) bool {
	for path := range v.bad {
		if strings.HasPrefix(path, at) {
			return true
		}
	}
	return v.told(at) || slices.ContainsFunc(v.problems, func(p Problem) bool { return !p.Warning && strings.HasPrefix(p.Path, at) })
}

// unused warns about what is configured and can never be reached.
func (v *validator) unused() {
	used := map[string]bool{}
	for _, s := range v.cfg.Sources {
		for _, name := range s.Forward {
			used[name] = true
		}
	}
	for _, r := range v.cfg.Rules {
		if r.Go != "" {
			return // a handler of the owner's may forward anywhere
		}
		for _, name := range r.destinations() {
			used[name] = true
		}
	}
	for _, to := range v.cfg.Alerts.To {
		used[strings.TrimPrefix(to, "destination:")] = true
	}
	if v.troubled("alerts.to") {
		return // who is meant there is not known
	}
	known := sortedKeys(v.cfg.Destinations)
	for _, name := range sortedKeys(used) {
		used[Nearest(name, known)] = true // a name that is nobody's is reported by itself
	}
	for _, name := range known {
		if !used[name] {
			d := v.cfg.Destinations[name]
			hint := `write forward = "` + name + `" in a source, or a rule`
			if d.Kind() != ToURL {
				hint = EffectHint(d.Kind(), name)
			}
			v.warn(Join("destination", name), "nothing forwards to it", hint)
		}
	}
}
