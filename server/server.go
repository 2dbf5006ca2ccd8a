// Package server is the process: it opens the data folder, wires store,
// runner, hub and pages together, listens, and closes everything in order.
// [Open] starts a server, [Server.Close] ends it; runs go on without it.
package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"alidade/gpu"
	"alidade/runner"
	"alidade/runner/local"
	"alidade/runner/slurm"
	"alidade/store"
	"alidade/trainer/preflight"
	"alidade/web"
)

// Config says what to serve and where.
type Config struct {
	Data     string   // data folder; made when absent
	Addr     string   // host:port; port 0 takes a free one
	NoAuth   bool     // no token is asked for; loopback only
	Hosts    []string // further names under which the server may be called
	Exposed  bool     // allow an address other than loopback
	CPUSlots int      // runs at once on CPUs; 0 = cores
	Devices  string   // "" = what is found; "sim:8xA100-80G" = simulated
	Launcher string   // where runs are started: local (also when empty), slurm
	Exe      string   // Alidade's own binary; "" = this program
	Version  string
	Logger   *slog.Logger // nil = silent
}

// Server is a running server.
type Server struct {
	cfg   Config
	log   *slog.Logger
	token string
	addr  string

	store  *store.Store
	runner *runner.Runner
	hub    *web.Hub
	http   *http.Server

	cancel  context.CancelFunc // ends runner, hub and device readings
	workers sync.WaitGroup
	failed  chan error
}

// Here is what a running server leaves in its data folder for other commands.
type Here struct {
	PID     int       `json:"pid"`
	URL     string    `json:"url"`
	Started time.Time `json:"started"`
}

const (
	hereFile  = "server.json"
	tokenFile = "token"
)

// Open opens the data folder, wires everything and listens. Errors name what
// is in the way: a folder that cannot be written, another server (with its
// PID), a port in use.
func Open(ctx context.Context, c Config) (*Server, error) {
	s := &Server{cfg: c, log: c.Logger, failed: make(chan error, 1)}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	if err := s.checkAddress(); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(c.Data, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder %s: %w; choose another with --data", c.Data, err)
	}
	if fs := runner.FileSystemOf(c.Data); fs.Refused {
		return nil, fmt.Errorf("data folder %s is on %s: SQLite's locks do not hold on network file systems and the database would be damaged; put the data folder on a local disk (its folder runs may be a link to a shared one)", c.Data, fs.Name)
	}
	listener, err := listen(ctx, c.Addr)
	if err != nil {
		return nil, err
	}
	if err := s.wire(ctx, listener); err != nil {
		listener.Close()
		s.release()
		return nil, err
	}
	return s, nil
}

// checkAddress refuses what would expose a program that starts processes.
func (s *Server) checkAddress() error {
	host, _, err := net.SplitHostPort(s.cfg.Addr)
	if err != nil {
		return fmt.Errorf("address %q: want host:port, such as 127.0.0.1:7717", s.cfg.Addr)
	}
	ip := net.ParseIP(host)
	loopback := host == "localhost" || (ip != nil && ip.IsLoopback())
	if !loopback && s.cfg.NoAuth {
		return fmt.Errorf("address %q with --no-auth: without a token only loopback addresses are served", s.cfg.Addr)
	}
	if !loopback && !s.cfg.Exposed {
		return fmt.Errorf("address %q can be reached from other machines and this server starts processes: use 127.0.0.1 and an SSH tunnel, or say --exposed", s.cfg.Addr)
	}
	return nil
}

func listen(ctx context.Context, addr string) (net.Listener, error) {
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w; choose another address with --addr, or port 0 for a free one", addr, err)
	}
	return l, nil
}

// wire builds the parts from the bottom up and starts them.
func (s *Server) wire(ctx context.Context, l net.Listener) error {
	var err error
	if s.store, err = store.Open(s.cfg.Data, store.Options{Logger: s.log, CommitEvery: 25 * time.Millisecond}); err != nil {
		return err
	}
	if s.token, err = loadToken(s.cfg.Data); err != nil {
		return err
	}
	pool, err := gpu.New(gpu.Config{CPUSlots: s.cfg.CPUSlots, Spec: s.cfg.Devices, Logger: s.log})
	if err != nil {
		return err
	}
	exe, err := s.exe()
	if err != nil {
		return err
	}
	settings, err := runner.ReadSettings(s.cfg.Data)
	if err != nil {
		return err
	}
	launcher, err := s.launcher(exe, settings)
	if err != nil {
		return err
	}
	s.hub = web.NewHub(web.HubConfig{Logger: s.log})
	s.runner, err = runner.New(runner.Config{Store: s.store, Data: s.cfg.Data, Devices: pool, Launcher: launcher, Publish: s.hub.Publish, Logger: s.log, Exe: exe, Settings: settings})
	if err != nil {
		return err
	}
	deviceNow := func() []web.Device { return devices(s.runner.Devices()) }
	history := web.NewDeviceHistory(deviceNow)
	handler, err := web.New(web.Config{
		Store: s.store, Runs: s.runner, Queue: queue{s.runner, s.store, s.hub.Publish}, Devices: deviceNow, History: history, Hub: s.hub,
		Trainers: trainers{preflight.On(s.cfg.Data, func() []float64 { return gpuMemory(s.runner.Devices()) }), s.runner.Devices},
		Token:    s.token, NoAuth: s.cfg.NoAuth, Hosts: s.cfg.Hosts, Logger: s.log, Version: s.cfg.Version, DataDir: s.cfg.Data,
	})
	if err != nil {
		return err
	}
	s.addr = l.Addr().String()
	if err := s.announce(); err != nil {
		return err
	}
	// The parts outlive the caller's context: Close ends them in order.
	life, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s.cancel = cancel
	s.http = &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, WriteTimeout: 5 * time.Minute, IdleTimeout: 2 * time.Minute,
		BaseContext: func(net.Listener) context.Context { return life },
		ErrorLog:    slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	s.workers.Go(func() { _ = s.hub.Run(life) }) // it returns when life ends
	s.workers.Go(func() {
		if err := s.runner.Run(life); err != nil && !errors.Is(err, context.Canceled) {
			s.fail(fmt.Errorf("runner: %w", err))
		}
	})
	s.workers.Go(func() {
		if err := s.http.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			s.fail(fmt.Errorf("serve: %w", err))
		}
	})
	return nil
}

// launcher makes the one that was asked for.
func (s *Server) launcher(exe string, settings runner.Settings) (runner.Launcher, error) {
	switch s.cfg.Launcher {
	case "", "local":
		return local.New(exe)
	case "slurm":
		return slurm.New(slurm.Config{Exe: exe, Settings: settings.Slurm, Logger: s.log})
	}
	return nil, fmt.Errorf("launcher %q: want local or slurm", s.cfg.Launcher)
}

func (s *Server) fail(err error) {
	select {
	case s.failed <- err:
	default:
	}
}

// Failed delivers the error that ended a part of the server, if one does.
func (s *Server) Failed() <-chan error { return s.failed }

func (s *Server) exe() (string, error) {
	if s.cfg.Exe != "" {
		return filepath.Abs(s.cfg.Exe)
	}
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's file: %w", err)
	}
	return exe, nil
}

// URL is where the server listens, without the token.
func (s *Server) URL() string { return "http://" + s.addr }

// Link is the address that signs a browser in.
func (s *Server) Link() string {
	if s.cfg.NoAuth {
		return s.URL() + "/"
	}
	return s.URL() + "/?token=" + s.token
}

// Token is what API clients send.
func (s *Server) Token() string { return s.token }

// Runner gives commands of this process the runner.
func (s *Server) Runner() *runner.Runner { return s.runner }

// Store gives commands of this process the store.
func (s *Server) Store() *store.Store { return s.store }

func (s *Server) announce() error {
	b, err := json.Marshal(Here{PID: os.Getpid(), URL: s.URL(), Started: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		return err
	}
	path := filepath.Join(s.cfg.Data, hereFile)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}

// Close ends the server: live connections first, since the HTTP server does
// not know them once they are websockets; then requests; then the runner,
// which leaves its trainers running; the store last, when nobody writes.
func (s *Server) Close(ctx context.Context) error {
	s.hub.Close()
	stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	err := s.http.Shutdown(stop)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	return errors.Join(err, s.release())
}

func (s *Server) release() error {
	if s.cancel != nil {
		s.cancel()
	}
	s.workers.Wait()
	if s.addr != "" {
		os.Remove(filepath.Join(s.cfg.Data, hereFile)) // gone already is fine
	}
	if s.store == nil {
		return nil
	}
	return s.store.Close()
}

// Find returns the server that is running on a data folder, and its token.
func Find(data string) (Here, string, bool) {
	var h Here
	b, err := os.ReadFile(filepath.Join(data, hereFile))
	if err != nil || json.Unmarshal(b, &h) != nil || h.PID == 0 {
		return h, "", false
	}
	token, err := os.ReadFile(filepath.Join(data, tokenFile))
	if err != nil || !alive(h.PID) {
		return h, "", false
	}
	return h, string(token), answers(h.URL)
}

func alive(pid int) bool {
	_, err := os.Stat("/proc/" + strconv.Itoa(pid))
	return err == nil
}

func answers(url string) bool {
	client := http.Client{Timeout: 2 * time.Second}
	res, err := client.Get(url + "/healthz")
	if err != nil {
		return false
	}
	res.Body.Close()
	return res.StatusCode < 500
}
