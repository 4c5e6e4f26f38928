package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"creel/source"
)

func (f *frame) providers() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "providers",
		Short: "List the senders that Creel knows",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			rows := newTable(f.out, "PROVIDER", "SENDER", "SIGNED WITH", "SECRET")
			for _, preset := range source.Presets() {
				if f.asJSON {
					if err := f.printJSON(map[string]string{"provider": preset.Name, "sender": preset.Title,
						"auth": preset.Scheme.Auth, "secret": preset.Secret, "docs": preset.Docs}); err != nil {
						return err
					}
					continue
				}
				rows.row(preset.Name, preset.Title, preset.Scheme.Auth, preset.Secret)
			}
			if !f.asJSON {
				rows.flush()
				fmt.Fprintln(f.out, "\ncreel contract NAME says how one of them delivers. Any other sender can be\ndescribed in the configuration: [source.verify] in config.example.toml.")
			}
			return nil
		},
	}
	return f.jsonFlag(cmd)
}

func (f *frame) contract() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "contract PROVIDER",
		Short: "Print how a sender delivers: timeout, retries, order, where missed events are listed",
		Args:  oneArg("the name of a provider"),
		RunE: func(_ *cobra.Command, args []string) error {
			contract, ok := source.ContractOf(args[0])
			if !ok {
				return usage("creel providers", "there is no provider %q", args[0])
			}
			list := ""
			for _, preset := range source.Presets() {
				if preset.Name == args[0] {
					list = preset.List()
				}
			}
			if f.asJSON {
				return f.printJSON(map[string]any{"provider": args[0], "contract": contract, "list": list})
			}
			for _, fact := range contract.Facts() {
				fmt.Fprintf(f.out, "%-14s %s\n", fact.Name, orUnknown(fact.Is))
				if fact.From != "" {
					fmt.Fprintf(f.out, "%-14s   source: %s\n", "", fact.From)
				}
			}
			if list == "" {
				list = "nothing by itself: [source.reconcile] describes a list, and --ids takes a report"
			}
			fmt.Fprintf(f.out, "%-14s %s\n", "reconcile", list)
			return nil
		},
	}
	return f.jsonFlag(cmd)
}

func orUnknown(text string) string {
	if strings.TrimSpace(text) == "" {
		return source.Unknown
	}
	return text
}
