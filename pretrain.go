package main

import (
	"fmt"

	"alidade/trainer/cpu"

	"github.com/spf13/cobra"
)

// pretrainCommand makes the base checkpoint that the program ships.
func pretrainCommand() *cobra.Command {
	var size, out string
	var long bool
	c := &cobra.Command{
		Use: "pretrain", Short: "Make a base checkpoint with the look-up skill", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			settings := cpu.DefaultPretrain(size)
			if long {
				settings = cpu.LongPretrain(size)
			}
			return cpu.WriteBase(c.Context(), out, settings, func(line string) { fmt.Fprintln(c.OutOrStdout(), line) })
		},
	}
	c.Flags().StringVar(&size, "size", "small", "policy size")
	c.Flags().BoolVar(&long, "long", false, "in the language of five- and seven-day trips")
	c.Flags().StringVar(&out, "out", "", "file to write, such as trainer/cpu/base/small.safetensors")
	_ = c.MarkFlagRequired("out") // the flag exists
	return c
}
