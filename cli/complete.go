package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"creel/config"
	"creel/source"
)

// completes makes the shell complete a flag with words.
func completes(cmd *cobra.Command, flag string, words func() []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return words(), cobra.ShellCompDirectiveNoFileComp
	}) // it fails only for a flag that there is not
}

// completesArgument makes the shell complete the first argument with words, and
// those behind it, where there are more, with files.
func completesArgument(cmd *cobra.Command, more bool, words func() []string) {
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		switch {
		case len(args) > 0 && more:
			return nil, cobra.ShellCompDirectiveDefault
		case len(args) > 0:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words(), cobra.ShellCompDirectiveNoFileComp
	}
}

// completesNames makes the shell complete whatever takes a name: the flags
// --source, --destination and --rule of all commands, and an argument that the
// usage line calls so.
func (f *frame) completesNames(cmd *cobra.Command) {
	words := map[string]func() []string{
		"source": f.configured(namesOf), "destination": f.configured((*config.Config).DestinationNames), "rule": f.configured(ruleNames),
		"provider": presetNames,
	}
	for name, known := range words {
		if cmd.Flags().Lookup(name) != nil {
			completes(cmd, name, known)
		}
		if fields := strings.Fields(cmd.Use); len(fields) > 1 && fields[1] == strings.ToUpper(name) {
			completesArgument(cmd, len(fields) > 2, known)
		}
	}
	for _, sub := range cmd.Commands() {
		f.completesNames(sub)
	}
}

// configured are names of the configuration that a command would use: none where
// there is no file, and those that could be read where it has problems.
func (f *frame) configured(names func(*config.Config) []string) func() []string {
	return func() []string {
		s, err := f.load()
		if err != nil || s.file == "" {
			return nil
		}
		return names(s.config)
	}
}

func presetNames() []string {
	var names []string
	for _, preset := range source.Presets() {
		names = append(names, preset.Name)
	}
	return names
}

// words are values as a flag takes them.
func words[T ~string](values []T) func() []string {
	return func() []string {
		names := make([]string, len(values))
		for i, value := range values {
			names[i] = string(value)
		}
		return names
	}
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
