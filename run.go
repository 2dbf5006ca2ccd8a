package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"alidade/ablation"
	"alidade/ablation/studyfile"
	"alidade/server"

	"github.com/spf13/cobra"
)

func runCommand() *cobra.Command {
	var f serverFlags
	var wait bool
	var reportDir string
	c := &cobra.Command{
		Use: "run STUDY.yaml", Short: "Launch a study", Args: cobra.ExactArgs(1),
		Long: "Launch a study.\n\nA server that is running on the data folder takes it; otherwise this command runs one of its own until the study is done.\nWith --wait (always so without a running server) the exit code is 0 only if every run succeeded.",
		RunE: func(c *cobra.Command, args []string) error {
			f.Version = version
			return launchStudy(c.Context(), c.OutOrStdout(), &f, c.ErrOrStderr(), args[0], wait || reportDir != "", reportDir)
		},
	}
	f.add(c, "127.0.0.1:0")
	c.Flags().BoolVar(&wait, "wait", false, "wait for the runs and show their progress")
	c.Flags().StringVar(&reportDir, "report", "", "write the report into this folder when the runs have ended; implies --wait")
	return c
}

// launchStudy is the run command.
func launchStudy(ctx context.Context, out io.Writer, f *serverFlags, logs io.Writer, file string, wait bool, reportDir string) (err error) {
	source, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read study file: %w", err)
	}
	// Checked here too, so that messages name the file as the user wrote it.
	if _, err := studyfile.Decode(file, source); err != nil {
		return err
	}
	here, token, running := server.Find(f.Data)
	link := here.URL
	var own *server.Server
	if !running {
		if own, err = ownServer(ctx, f, logs); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, own.Close(ctx)) }()
		here.URL, token, link, wait = own.URL(), own.Token(), own.Link(), true
	}
	api := newClient(here.URL, token)
	l, err := api.launch(ctx, source)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Study S-%d: %d runs queued\nWatch it at %s\n", l.Study.ID, len(l.Runs), studyLink(link, l.Study.ID))
	if !wait {
		return nil
	}
	runs, err := follow(ctx, out, api, l.Study.ID)
	if errors.Is(err, context.Canceled) && own != nil {
		fmt.Fprintln(out, "Interrupted: the runs are being stopped and keep their checkpoints.")
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		return errors.Join(exitError(130), own.Runner().StopAll(stop))
	}
	if err != nil {
		return err
	}
	if reportDir != "" {
		if err := writeReport(context.WithoutCancel(ctx), out, f.Data, l.Study.ID, reportDir); err != nil {
			return err
		}
	}
	return verdict(out, runs)
}

// ownServer starts a quiet server in this process.
func ownServer(ctx context.Context, f *serverFlags, logs io.Writer) (*server.Server, error) {
	f.Logger = f.logger(logs, slog.LevelError)
	s, err := server.Open(ctx, f.Config)
	if err != nil {
		return nil, fmt.Errorf("start a server of its own: %w", err)
	}
	return s, nil
}

// studyLink is the study's page; a first visit goes through the token.
func studyLink(link string, id ablation.StudyID) string {
	base, query := link, ""
	for i := range link {
		if link[i] == '?' {
			base, query = link[:i], link[i:]
			break
		}
	}
	if base != "" && base[len(base)-1] == '/' {
		base = base[:len(base)-1]
	}
	return fmt.Sprintf("%s/studies/%d%s", base, id, query)
}

// verdict says how the runs ended; any that did not succeed makes exit code 1.
func verdict(out io.Writer, runs []ablation.Run) error {
	good := 0
	for _, r := range runs {
		if r.State == ablation.Succeeded {
			good++
			continue
		}
		fmt.Fprintf(out, "Run %d (%s, seed %d) %s: %s\n", r.ID, r.Arm.Label, r.Seed, r.State, r.Cause)
	}
	fmt.Fprintf(out, "%d of %d runs succeeded\n", good, len(runs))
	if good < len(runs) {
		return exitError(1)
	}
	return nil
}

// absolute is a path as people can click it.
func absolute(path string) string {
	if a, err := filepath.Abs(path); err == nil {
		return a
	}
	return path
}
