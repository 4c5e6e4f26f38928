package cli

import (
	"fmt"
	"slices"
	"strings"

	"creel/config"
)

// noneNamed is the end of a command whose selection matched nothing: where it
// names a source or a destination that the configuration does not have, that is
// why.
func noneNamed(cfg *config.Config, source, destination, hint string) error {
	for _, one := range []struct {
		kind, name string
		known      []string
	}{{"source", source, namesOf(cfg)}, {"destination", destination, cfg.DestinationNames()}} {
		if one.name != "" && !slices.Contains(one.known, one.name) {
			return &exit{code: exitNothing, hint: meant(one.name, one.known),
				err: fmt.Errorf("nothing matched: there is no %s %q in the configuration, and nothing of one", one.kind, one.name)}
		}
	}
	return nothing(hint)
}

// meant is what a name that is not known may stand for, and all that there are.
func meant(name string, known []string) string {
	if near := config.Nearest(name, known); near != "" {
		return near + "? There are " + strings.Join(known, ", ")
	}
	return "one of " + strings.Join(known, ", ")
}
