package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"creel/config"
)

// completes makes the shell complete a flag with words.
func completes(cmd *cobra.Command, flag string, words func() []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	}) // it fails only for a flag that there is not
}

// completesArgument makes the shell complete the first argument with words.
func completesArgument(cmd *cobra.Command, words func() []string) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

// sourceNames are the sources of the configuration, for completion: a
// configuration that can not be read has none.
func (f *frame) sourceNames() []string {
	s, err := f.load()
	if err != nil {
		return nil
	}
	return namesOf(s.config)
}

// ruleNames are the rules of a configuration, those that forward = makes too.
func ruleNames(cfg *config.Config) []string {
	var names []string
	for i := range cfg.Rules {
		names = append(names, cfg.Rules[i].Name)
	}
	for i := range cfg.Sources {
		if len(cfg.Sources[i].Forward) > 0 {
			names = append(names, "forward "+cfg.Sources[i].Name)
		}
	}
	slices.Sort(names)
	return names
}

func namesOf(cfg *config.Config) []string {
	names := make([]string, len(cfg.Sources))
	for i := range cfg.Sources {
		names[i] = cfg.Sources[i].Name
	}
	slices.Sort(names)
	return names
}
