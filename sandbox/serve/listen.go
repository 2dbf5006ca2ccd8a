package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	maxSocketPath = 107 // bytes that the kernel takes for the path of a Unix socket
	drainWait     = 10 * time.Second
)

// Listen opens "host:port" or, for a text with a slash or behind "unix:", a
// Unix socket that only its owner may use. A socket left behind by a process
// that is gone is replaced.
func Listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	path, unix := strings.CutPrefix(addr, "unix:")
	if !unix && !strings.Contains(addr, "/") {
		l, err := lc.Listen(ctx, "tcp", addr)
		if err != nil {
			return nil, fmt.Errorf("listen: %w", err)
		}
		return l, nil
	}
	if len(path) == 0 || len(path) > maxSocketPath {
		return nil, fmt.Errorf("address is %q, a socket's path must have 1 to %d bytes", addr, maxSocketPath)
	}
	if err := clearSocket(ctx, path); err != nil {
		return nil, err
	}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = l.Close()
		return nil, fmt.Errorf("listen: %w", err)
	}
	return l, nil
}

// clearSocket removes a socket that nobody answers.
func clearSocket(ctx context.Context, path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	if info.Mode()&os.ModeSocket == 0 {
		return fmt.Errorf("address is %q, which is no socket and is left alone", path)
	}
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "unix", path)
	if err == nil {
		_ = conn.Close()
		return fmt.Errorf("address is %q, where another server answers", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("listen: %w", err)
	}
	return os.Remove(path)
}

// Serve serves on l until ctx is done, then shuts down: no new episodes,
// the WebSocket messages at work are answered and their connections closed,
// then the requests under way end. It closes l. Without a token it serves
// only if Config.NoAuth says so, and only this machine.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	if err := s.mayServe(l.Addr()); err != nil {
		_ = l.Close()
		return err
	}
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 5 * time.Minute, IdleTimeout: 30 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx }, // ends what waits for injected latency
		ErrorLog:    slog.NewLogLogger(s.config.Logger.Handler(), slog.LevelWarn),
	}
	reaping, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.Run(reaping) })
	defer wg.Wait()
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	s.config.Logger.Info("serving episodes", slog.String("addr", l.Addr().String()))
	select {
	case err := <-ended:
		s.Close()
		return fmt.Errorf("serve: %w", err)
	case <-ctx.Done():
	}
	s.Close()
	drain, cancel := context.WithTimeout(context.WithoutCancel(ctx), drainWait)
	defer cancel()
	err := srv.Shutdown(drain)
	if err != nil {
		_ = srv.Close()
		err = fmt.Errorf("shut down: %w", err)
	}
	<-ended
	return err
}

func (s *Server) mayServe(addr net.Addr) error {
	if s.config.Token != "" {
		return nil
	}
	if !s.config.NoAuth {
		return errors.New("token is empty, must be set unless authentication is switched off")
	}
	if addr.Network() != "unix" && !localName(addr.String()) {
		return fmt.Errorf("address is %s, without a token it must be on loopback", addr)
	}
	return nil
}
