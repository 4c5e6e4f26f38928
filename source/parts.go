package source

import "creel/config"

// PartsOf are the parts in which the events of a source stand where a request is
// not its event, with a * for each that it may hold. Nothing is checked.
func PartsOf(cfg config.Source) (parts []string) {
	in, _ := (&compiler{}).merged(cfg)
	if in.Split != "" {
		parts = append(parts, in.Split)
	}
	if in.Unwrap != "" {
		parts = append(parts, in.Unwrap)
		if in.Split != "" {
			parts = append(parts, in.Unwrap+"|"+in.Split)
		}
	}
	return parts
}
