// Alidade is a workbench for reinforcement-learning ablations of tool-using
// agents. This file picks the subcommand; each has a file of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"alidade/runner/shim"

	"github.com/spf13/cobra"
)

// version is set by releases through -ldflags.
var version = "0.1.0"

func main() {
	// The shim must not install signal handlers of its own kind nor parse
	// the trainer's arguments, so it branches off before everything else.
	if len(os.Args) > 1 && os.Args[1] == "shim" {
		os.Exit(shim.Main(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:]))
}

// exitError carries an exit code without a message of its own.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run is the whole program; tests call it too.
func run(ctx context.Context, args []string) int {
	root := command()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var code exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintf(root.ErrOrStderr(), "alidade: %s\n", err)
	return 1
}

func command() *cobra.Command {
	root := &cobra.Command{
		Use:           "alidade",
		Short:         "Design, run, watch and explain RL ablations of tool-using agents",
		Version:       version,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(serveCommand(), runCommand(), reportCommand(), rebuildCommand(), doctorCommand(), versionCommand(), trainCommand(), trainersCommand(), preflightCommand(), pretrainCommand(), travelCommand())
	return root
}

// dataFlag adds --data with its environment twin.
func dataFlag(c *cobra.Command, data *string) {
	def := os.Getenv("ALIDADE_DATA")
	if def == "" {
		def = "alidade-data"
	}
	c.Flags().StringVar(data, "data", def, "data folder (env ALIDADE_DATA)")
}

func versionCommand() *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs, Run: func(c *cobra.Command, _ []string) {
		fmt.Fprintln(c.OutOrStdout(), "alidade", version)
	}}
}
