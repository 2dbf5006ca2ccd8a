package main

import (
	"fmt"

	"alidade/trainer/cpu"

	"github.com/spf13/cobra"
)

// pretrainCommand makes the base checkpoint that the program ships.
func pretrainCommand() *cobra.Command {
	var size, out string
	c := &cobra.Command{
		Use: "pretrain", Short: "Make a base checkpoint with the look-up skill", Args: cobra.NoArgs, Hidden: true,
		RunE: func(c *cobra.Command, _ []string) error {
			return cpu.WriteBase(c.Context(), out, cpu.DefaultPretrain(size), func(line string) { fmt.Fprintln(c.OutOrStdout(), line) })
		},
	}
	c.Flags().StringVar(&size, "size", "small", "policy size")
	c.Flags().StringVar(&out, "out", "", "file to write, such as trainer/cpu/base/small.safetensors")
	_ = c.MarkFlagRequired("out") // the flag exists
	return c
}
