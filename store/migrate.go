package store

import (
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// migration is one numbered step of the schema.
type migration struct {
	version int
	name    string
	sql     string
}

func migrations() ([]migration, error) {
	files, err := fs.Glob(migrationFiles, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(files)
	var steps []migration
	for i, name := range files {
		src, err := migrationFiles.ReadFile(name)
		if err != nil {
			return nil, err
		}
		number, _, _ := strings.Cut(filepath.Base(name), "_")
		version, err := strconv.Atoi(number)
		if err != nil || version != i+1 {
			return nil, fmt.Errorf("migration %s: its number is not %d", name, i+1)
		}
		steps = append(steps, migration{version, name, string(src)})
	}
	return steps, nil
}

// migrate brings the database at path up to date, each step in a transaction
// of its own that also records the step. A database with data in it is copied
// first; a newer one is refused and not changed.
func migrate(db *sql.DB, path string, log *slog.Logger) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	return migrateTo(db, path, log, steps)
}

func migrateTo(db *sql.DB, path string, log *slog.Logger, steps []migration) error {
	version, err := schemaVersion(db)
	if err != nil {
		return err
	}
	if version > len(steps) {
		return tooNew(version, len(steps))
	}
	if version > 0 && version < len(steps) {
		if err := copyBefore(db, path, version); err != nil {
			return err
		}
	}
	for _, m := range steps[version:] {
		if err := m.apply(db); err != nil {
			return fmt.Errorf("migration %s: %w", m.name, err)
		}
		if version > 0 {
			log.Info("database migrated", "version", m.version)
		}
	}
	return nil
}

func (m migration) apply(db *sql.DB) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if _, err := tx.Exec(m.sql); err != nil {
		return err
	}
	if _, err := tx.Exec(fmt.Sprintf("PRAGMA user_version = %d", m.version)); err != nil {
		return err
	}
	return tx.Commit()
}

// copyBefore keeps a copy of the database as it is at this version.
func copyBefore(db *sql.DB, path string, version int) error {
	to := fmt.Sprintf("%s.v%d", path, version)
	if err := os.Remove(to); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("copy database before migration: %w", err)
	}
	if _, err := db.Exec("VACUUM INTO ?", to); err != nil {
		return fmt.Errorf("copy database before migration: %w", err)
	}
	return nil
}

func schemaVersion(db *sql.DB) (int, error) {
	var version int
	if err := db.QueryRow("PRAGMA user_version").Scan(&version); err != nil {
		return 0, fmt.Errorf("read schema version: %w", err)
	}
	return version, nil
}

// checkVersion is for a store that may not migrate.
func checkVersion(db *sql.DB) error {
	steps, err := migrations()
	if err != nil {
		return err
	}
	version, err := schemaVersion(db)
	switch {
	case err != nil:
		return err
	case version > len(steps):
		return tooNew(version, len(steps))
	case version < len(steps):
		return fmt.Errorf("database has schema version %d, this program needs %d: start alidade serve once to migrate it", version, len(steps))
	}
	return nil
}

func tooNew(version, own int) error {
	return fmt.Errorf("%w: it has schema version %d, this program knows %d; use a newer alidade", ErrNewer, version, own)
}
