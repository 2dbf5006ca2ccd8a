package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"alidade/server"

	"github.com/spf13/cobra"
)

// serverFlags are what serve and run share.
type serverFlags struct {
	server.Config
	verbose bool
}

func (f *serverFlags) add(c *cobra.Command, addr string) {
	dataFlag(c, &f.Data)
	if env := os.Getenv("ALIDADE_ADDR"); env != "" {
		addr = env
	}
	c.Flags().StringVar(&f.Addr, "addr", addr, "host:port to listen on; port 0 takes a free one (env ALIDADE_ADDR)")
	c.Flags().IntVar(&f.CPUSlots, "cpu-slots", 0, "CPU runs at once; 0 = cores")
	c.Flags().StringVar(&f.Devices, "devices", "", "auto, cpu, cpu:N, or a simulated node such as sim:8xA100-80G")
	c.Flags().StringVar(&f.Launcher, "launcher", "local", "where runs are started: local, or slurm (see docs/runner.md)")
	c.Flags().BoolVar(&f.verbose, "verbose", false, "log more")
}

func (f *serverFlags) logger(w io.Writer, level slog.Level) *slog.Logger {
	if f.verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level}))
}

func serveCommand() *cobra.Command {
	var f serverFlags
	var stopRuns bool
	c := &cobra.Command{
		Use: "serve", Short: "Serve the data folder: pages, API and the queue", Args: cobra.NoArgs,
		Long: "Serve the data folder: pages, API and the queue.\n\nRuns go on when the server stops, and are adopted at the next start; --stop-runs ends them instead.",
		RunE: func(c *cobra.Command, _ []string) error {
			f.Logger, f.Version = f.logger(c.ErrOrStderr(), slog.LevelInfo), version
			return serve(c.Context(), c.OutOrStdout(), f.Config, stopRuns)
		},
	}
	f.add(c, "127.0.0.1:7717")
	c.Flags().BoolVar(&f.NoAuth, "no-auth", false, "ask for no token (loopback only)")
	c.Flags().BoolVar(&f.Exposed, "exposed", false, "allow an address that other machines can reach; the token is still needed")
	c.Flags().StringSliceVar(&f.Hosts, "host", nil, "further names under which the server may be called")
	c.Flags().BoolVar(&stopRuns, "stop-runs", false, "end running trainers when the server stops")
	return c
}

// serve runs a server until ctx is done or a part of it fails.
func serve(ctx context.Context, out io.Writer, cfg server.Config, stopRuns bool) error {
	s, err := server.Open(ctx, cfg)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "Alidade %s serves %s\nOpen %s\n", version, cfg.Data, s.Link())
	select {
	case <-ctx.Done():
	case err = <-s.Failed():
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	if stopRuns {
		fmt.Fprintln(out, "Stopping the runs; they keep their checkpoints.")
		err = errors.Join(err, s.Runner().StopAll(closing))
	}
	return errors.Join(err, s.Close(closing))
}
