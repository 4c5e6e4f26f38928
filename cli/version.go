package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// buildVersion is the module version or commit that the binary was built
// from, as the Go tool wrote it into it.
func buildVersion() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	version := info.Main.Version
	if version != "" && version != "(devel)" {
		return version
	}
	commit, dirty := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision" && len(setting.Value) >= 12:
			commit = setting.Value[:12]
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "+changes"
		}
	}
	if commit == "" {
		return "devel"
	}
	return "devel-" + commit + dirty
}

func (f *frame) version() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  noArgs,
		RunE: func(*cobra.Command, []string) error {
			if f.asJSON {
				return f.printJSON(map[string]string{"version": buildVersion(), "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH})
			}
			fmt.Fprintf(f.out, "creel %s (%s, %s/%s)\n", buildVersion(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
	return f.jsonFlag(cmd)
}
