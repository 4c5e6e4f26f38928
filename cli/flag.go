package cli

import (
	"errors"

	"github.com/spf13/cobra"
)

// textVar adds a flag that takes a text. Given, it is never empty: --source
// "$SOURCE" of a shell whose variable is not set would select every source.
func textVar(cmd *cobra.Command, into *string, name, usage string) {
	cmd.Flags().Var((*text)(into), name, usage)
}

type text string

func (t *text) Set(value string) error {
	if value == "" {
		return errors.New("it is empty: leave the flag out, or look where its value comes from")
	}
	*t = text(value)
	return nil
}

func (t *text) String() string { return string(*t) }
func (t *text) Type() string   { return "string" }
