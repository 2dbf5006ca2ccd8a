package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"alidade/ablation"
	"alidade/report"
	"alidade/report/stored"
	"alidade/store"

	"github.com/spf13/cobra"
)

func reportCommand() *cobra.Command {
	var data, out string
	c := &cobra.Command{
		Use: "report STUDY", Short: "Write a study's report: page, Markdown, CSV, JSON, figures", Args: cobra.ExactArgs(1),
		Long: "Write a study's report: page, Markdown, CSV, JSON, figures.\n\nSTUDY is its number, with or without \"S-\". It works beside a running server.",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := strconv.ParseInt(strings.TrimPrefix(strings.ToUpper(args[0]), "S-"), 10, 64)
			if err != nil || id < 1 {
				return fmt.Errorf("study %q: want a number such as 3 or S-3", args[0])
			}
			return writeReport(c.Context(), c.OutOrStdout(), data, ablation.StudyID(id), out)
		},
	}
	dataFlag(c, &data)
	c.Flags().StringVar(&out, "out", "report", "folder to write into")
	return c
}

// writeReport reads the store beside whoever writes it and renders the report.
func writeReport(ctx context.Context, out io.Writer, data string, id ablation.StudyID, dir string) error {
	s, err := store.Open(data, store.Options{ReadOnly: true})
	if err != nil {
		return err
	}
	defer s.Close()
	in, err := report.Load(ctx, stored.Source{Store: s}, id, report.Options{Made: time.Now().UTC().Truncate(time.Second), Version: version})
	if err != nil {
		return fmt.Errorf("read study S-%d: %w", id, err)
	}
	r, err := report.Build(in)
	if err != nil {
		return fmt.Errorf("build report: %w", err)
	}
	if err := report.Write(dir, r); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	fmt.Fprintf(out, "Report: %s\n", absolute(filepath.Join(dir, "report.html")))
	return nil
}

func rebuildCommand() *cobra.Command {
	var data string
	c := &cobra.Command{
		Use: "rebuild", Short: "Make the database again from the run folders", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := store.Rebuild(c.Context(), data, nil); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "The database in %s was made again from its run folders.\n", absolute(data))
			return nil
		},
	}
	dataFlag(c, &data)
	return c
}
