package main

import (
	"fmt"

	"alidade/trainer/trl"

	"github.com/spf13/cobra"
)

// installCommand installs a framework of language models into the data folder.
func installCommand() *cobra.Command {
	var data, python, wheels string
	c := &cobra.Command{
		Use: "install trl", Short: "Install a trainer of language models into the data folder", Args: cobra.ExactArgs(1), ValidArgs: []string{trl.Kind},
		Long: "Install a trainer of language models into a virtual environment of the data folder: with uv where it is found, else with venv and pip.\n" +
			"Versions are locked. A second call finds everything done; one that was cut short is gone on with. About 6 GB, most of it CUDA's libraries.",
		Example: "  alidade trainers install trl\n  alidade trainers install trl --wheels /mnt/wheels   # without a network",
		RunE: func(c *cobra.Command, args []string) error {
			if args[0] != trl.Kind {
				return fmt.Errorf("trainer %q cannot be installed by this command; allowed: %s. For others make an environment of your own and name its interpreter in native.python", args[0], trl.Kind)
			}
			return trl.Install{Data: data, Python: python, Wheels: wheels, Out: c.OutOrStdout()}.Run(c.Context())
		},
	}
	dataFlag(c, &data)
	c.Flags().StringVar(&python, "python", "", "interpreter to build on, 3.11 or newer; empty = python3")
	c.Flags().StringVar(&wheels, "wheels", "", "folder of wheels to install from, without a network")
	return c
}
