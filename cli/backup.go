package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"creel/store"
)

func (f *frame) backup() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Copy the database while the server runs",
		Long: `Backup writes a copy of the database as it stands now, beside a running server
or without one. Every event that was acknowledged by then is in it. The copy is
checked whole and replaces no file. Copying the .db file yourself is no backup:
what is newest stands in the file beside it.`,
		Example: `  creel backup /backup/creel-$(date +%F).db`,
		Args:    oneArg("the file to write"),
		RunE: func(cmd *cobra.Command, args []string) error {
			reader, _, err := f.reader(cmd.Context())
			if err != nil {
				return err
			}
			defer reader.Close()
			copied, err := reader.Backup(cmd.Context(), args[0])
			if err != nil {
				return failed("", "%w", err)
			}
			if f.asJSON {
				return json.NewEncoder(f.out).Encode(copied)
			}
			fmt.Fprintf(f.out, "%s holds %s in %s; it was checked whole, in %s.\n", copied.Path, plural(int(copied.Events), "event", "events"), plural(copied.Bytes, "byte", "bytes"), copied.Took.Round(time.Millisecond))
			return nil
		},
	}
	return f.jsonFlag(cmd)
}

func (f *frame) restore() *cobra.Command {
	var replace bool
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Put a backup in the place of the database",
		Long: `Restore checks a backup whole and puts it where the configuration has its
database. It refuses while a server has that open. A database that is there is
refused too, unless --replace moves it aside first: it is never deleted.

What came in since the backup is not in it: compare with the senders' own lists.`,
		Example: `  creel restore /backup/creel-2026-11-01.db
  creel restore /backup/creel-2026-11-01.db --replace`,
		Args: oneArg("the backup"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := f.usable()
			if err != nil {
				return err
			}
			restored, err := store.Restore(cmd.Context(), args[0], s.config.Database, replace, f.now())
			switch {
			case errors.Is(err, store.ErrRunning):
				return failed("stop the server, then the same command", "%w", err)
			case errors.Is(err, store.ErrExists):
				return failed("creel restore "+args[0]+" --replace", "%w", err)
			case errors.Is(err, fs.ErrNotExist):
				return usage("", "%w", err)
			case errors.Is(err, store.ErrCorrupt):
				return failed("another backup; the database is as it was", "the backup can not be restored: %w", err)
			case err != nil:
				return failed("", "%w", err)
			}
			if f.asJSON {
				return json.NewEncoder(f.out).Encode(restored)
			}
			if restored.Aside != "" {
				fmt.Fprintf(f.out, "The database that was there is %s now.\n", restored.Aside)
			}
			fmt.Fprintf(f.out, "%s is restored with %s. Start the server, then compare with the senders' own lists.\n", restored.Path, plural(int(restored.Events), "event", "events"))
			return nil
		},
	}
	cmd.Flags().BoolVar(&replace, "replace", false, "move a database that is there aside first")
	return f.jsonFlag(cmd)
}
