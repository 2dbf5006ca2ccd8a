package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"alidade/ablation"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("STORE_TEST_HOLD"); dir != "" { // child of TestALockOfADeadProcessIsTakenOver
		if _, err := Open(dir, Options{}); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	if dir := os.Getenv("STORE_TEST_INGEST"); dir != "" { // child of TestKilledServerLosesNothing
		fmt.Fprintln(os.Stderr, ingestForever(dir))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestOpenTwiceNamesTheHolder(t *testing.T) {
	dir := t.TempDir()
	open(t, dir)
	_, err := Open(dir, Options{})
	var held *HeldError
	if !errors.As(err, &held) || held.PID != os.Getpid() || time.Since(held.Since) > time.Minute {
		t.Fatalf("second Open = %v, want a HeldError with PID %d", err, os.Getpid())
	}
	if !strings.Contains(err.Error(), fmt.Sprint(os.Getpid())) {
		t.Errorf("%q does not name the process", err)
	}
	if err := Rebuild(t.Context(), dir, nil); !errors.As(err, &held) {
		t.Errorf("Rebuild of a served folder = %v, want a HeldError", err)
	}
}

func TestALockOfADeadProcessIsTakenOver(t *testing.T) {
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "STORE_TEST_HOLD="+dir)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 4)
	if _, err := io.ReadFull(out, said); err != nil || string(said) != "held" {
		t.Fatalf("child said %q, %v", said, err)
	}
	_, err = Open(dir, Options{})
	var held *HeldError
	if !errors.As(err, &held) || held.PID != cmd.Process.Pid {
		t.Errorf("Open beside a live process = %v, want its PID %d", err, cmd.Process.Pid)
	}
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	open(t, dir)
}

func TestANewerDatabaseIsRefusedUnchanged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	create(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, databaseName)
	db, err := sql.Open("sqlite3", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("PRAGMA user_version = 99"); err != nil {
		t.Fatal(err)
	}
	db.Close()
	before, _ := os.ReadFile(path)
	for _, o := range []Options{{}, {ReadOnly: true}} {
		if _, err := Open(dir, o); !errors.Is(err, ErrNewer) || !strings.Contains(err.Error(), "99") {
			t.Errorf("Open(%+v) = %v, want ErrNewer that names version 99", o, err)
		}
	}
	after, _ := os.ReadFile(path)
	if string(before) != string(after) {
		t.Error("the refused database was changed")
	}
}

func TestMigrationCopiesFirstAndIsAllOrNothing(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	runs := create(t, s, 1)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, databaseName)
	db, err := sql.Open("sqlite3", dsn(path, writerPragmas))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	steps, err := migrations()
	if err != nil {
		t.Fatal(err)
	}
	own := len(steps)
	bad := append(steps, migration{own + 1, "bad.sql", "CREATE TABLE extra (x INTEGER); INSERT INTO nowhere VALUES (1);"})
	if err := migrateTo(db, path, s.log, bad); err == nil {
		t.Fatal("a broken migration succeeded")
	}
	if v, _ := schemaVersion(db); v != own {
		t.Errorf("version %d after a broken migration, want %d", v, own)
	}
	good := append(steps[:own:own], migration{own + 1, "good.sql", "CREATE TABLE extra (x INTEGER)"})
	if err := migrateTo(db, path, s.log, good); err != nil {
		t.Fatalf("after the broken one was rolled back: %v", err)
	}
	if v, _ := schemaVersion(db); v != own+1 {
		t.Errorf("version %d, want %d", v, own+1)
	}
	kept, err := sql.Open("sqlite3", fmt.Sprintf("%s.v%d", path, own))
	if err != nil {
		t.Fatal(err)
	}
	defer kept.Close()
	var n int
	if err := kept.QueryRow("SELECT count(*) FROM runs").Scan(&n); err != nil || n != len(runs) {
		t.Errorf("the copy from before has %d runs, %v; want %d", n, err, len(runs))
	}
}

func TestReadOnlyBesideAServer(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, Options{ReadOnly: true}); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("Open of an empty folder for reading = %v, want an error that names it", err)
	}
	s := open(t, dir)
	runs := create(t, s, 1)
	ro, err := Open(dir, Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ro.Close()
	start(t, s, runs[0].ID, 1, 0)
	f := &feeder{t: t, w: s.RunWriter(), run: runs[0].ID, attempt: 1}
	f.append(points(1, map[string]float64{"x": 7}))
	if got := series(t, ro, runs[0].ID, "x"); len(got.Points) != 1 || got.Points[0].Value != 7 {
		t.Errorf("reader sees %v", got)
	}
	if _, err := ro.RunWriter().Append(t.Context(), Batch{Run: 1}); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Append = %v, want ErrReadOnly", err)
	}
	if err := ro.SetStudyPaused(t.Context(), 1, true); !errors.Is(err, ErrReadOnly) {
		t.Errorf("SetStudyPaused = %v, want ErrReadOnly", err)
	}
}

func TestFaultsOfTheDiskAreNamed(t *testing.T) {
	tests := []struct {
		name string
		err  error
		want error
		says string
	}{
		{"no space", &os.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, ErrDiskFull, "no space left in data folder /data"},
		{"read-only file system", &os.PathError{Op: "write", Path: "x", Err: syscall.EROFS}, ErrReadOnly, "data folder /data cannot be written"},
		{"permission", &os.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, ErrReadOnly, "data folder /data cannot be written"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := plain("/data", fmt.Errorf("commit: %w", tt.err))
			if !errors.Is(got, tt.want) || !errors.Is(got, tt.err) || !strings.Contains(got.Error(), tt.says) {
				t.Errorf("plain(%v) = %v", tt.err, got)
			}
		})
	}
	if file := filepath.Join(t.TempDir(), "file"); os.WriteFile(file, nil, 0o600) == nil {
		if _, err := Open(filepath.Join(file, "data"), Options{}); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("Open below a file = %v", err)
		}
	}
}

// TestADatabaseThatIsFullSaysSo limits the database's pages, as a full disk
// would, and sees that what was stored stays and that it goes on afterwards.
func TestADatabaseThatIsFullSaysSo(t *testing.T) {
	s := open(t, t.TempDir())
	run := create(t, s, 1)[0].ID
	start(t, s, run, 1, 0)
	f := &feeder{t: t, w: s.RunWriter(), run: run, attempt: 1}
	f.append(points(1, map[string]float64{"x": 1}))
	var pages int
	if err := s.write.QueryRow("PRAGMA page_count").Scan(&pages); err != nil {
		t.Fatal(err)
	}
	if _, err := s.write.Exec(fmt.Sprintf("PRAGMA max_page_count = %d", pages+1)); err != nil {
		t.Fatal(err)
	}
	var events []trainerEvent
	for step := int64(2); step < 3000; step++ {
		events = append(events, points(step, map[string]float64{"x": 1}))
	}
	_, err := f.w.Append(t.Context(), Batch{Run: run, Attempt: 1, Offset: 900, Events: events})
	if !errors.Is(err, ErrDiskFull) {
		t.Fatalf("Append to a full database = %v, want ErrDiskFull", err)
	}
	if got := series(t, s, run, "x"); len(got.Points) != 1 {
		t.Errorf("%d points after the fault, want 1", len(got.Points))
	}
	if _, err := s.write.Exec("PRAGMA max_page_count = 1000000"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.w.Append(t.Context(), Batch{Run: run, Attempt: 1, Offset: 900, Events: events}); err != nil {
		t.Fatalf("Append once there is space: %v", err)
	}
	if got := series(t, s, run, "x"); len(got.Points) != 2999 {
		t.Errorf("%d points, want 2999", len(got.Points))
	}
}

// TestManyWritersAndReadersAreNeverBusy appends to many runs at once while
// others read and move points to rest.
func TestManyWritersAndReadersAreNeverBusy(t *testing.T) {
	dir := t.TempDir()
	var logged strings.Builder
	var mu sync.Mutex
	log := slog.New(slog.NewTextHandler(lockedWriter{&mu, &logged}, &slog.HandlerOptions{Level: slog.LevelWarn}))
	s, err := Open(dir, Options{CommitEvery: 2 * time.Millisecond, Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	runs := create(t, s, 32)
	const batches = 15
	ctx, stop := context.WithCancel(t.Context())
	var writers, readers sync.WaitGroup
	for _, r := range runs {
		start(t, s, r.ID, 1, 0)
		writers.Go(func() {
			w := s.RunWriter()
			for i := range int64(batches) {
				_, err := w.Append(context.Background(), Batch{Run: r.ID, Attempt: 1, Offset: i + 1, Events: []trainerEvent{
					points(i, map[string]float64{"a": float64(i), fmt.Sprint("own ", r.ID): 1}), trajectory(i, int(r.ID), nil)}})
				if err != nil {
					t.Errorf("Append: %v", err)
				}
			}
			w.s.settleTail(r.ID)
		})
	}
	for range 20 {
		readers.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				id := runs[i%len(runs)].ID
				if _, err := s.Series(t.Context(), SeriesQuery{Runs: []ablation.RunID{id}, Metrics: []string{"a"}}); err != nil {
					t.Errorf("Series: %v", err)
				}
				if _, _, err := s.Trajectories(t.Context(), TrajectoryFilter{Text: "reno", Limit: 5}); err != nil {
					t.Errorf("Trajectories: %v", err)
				}
			}
		})
	}
	writers.Wait()
	stop()
	readers.Wait()
	for _, r := range runs {
		if got := series(t, s, r.ID, "a"); len(got.Points) != batches {
			t.Errorf("run %d: %d points, want %d", r.ID, len(got.Points), batches)
		}
	}
	if _, total, err := s.Trajectories(t.Context(), TrajectoryFilter{}); err != nil || total != batches*len(runs) {
		t.Errorf("%d trajectories, %v; want %d", total, err, batches*len(runs))
	}
	mu.Lock()
	defer mu.Unlock()
	if logged.Len() > 0 {
		t.Errorf("logged: %s", logged.String())
	}
}

type lockedWriter struct {
	mu *sync.Mutex
	w  io.Writer
}

func (l lockedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(b)
}
