package verl

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"alidade/trainer/native"
)

// latestFile names the last checkpoint that is complete. verl writes it last,
// and not at all when it saves asynchronously.
const latestFile = "latest_checkpointed_iteration.txt"

var shardName = regexp.MustCompile(`^model_world_size_(\d+)_rank_(\d+)\.pt$`)

// Checkpoints finds the complete checkpoints below a folder, oldest first:
// those up to the step that latest_checkpointed_iteration.txt names. A later
// folder may be half written.
func Checkpoints(dir string) ([]native.Saved, error) {
	src, err := os.ReadFile(filepath.Join(dir, latestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	latest, err := strconv.ParseInt(strings.TrimSpace(string(src)), 10, 64)
	if err != nil {
		return nil, nil // the file is being written
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("checkpoints: %w", err)
	}
	var saved []native.Saved
	for _, e := range entries {
		step := stepOf(e.Name())
		if !e.IsDir() || step <= 0 || step > latest {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if ok, err := wholeShards(path); err != nil || !ok {
			continue
		}
		saved = append(saved, native.Saved{Step: step, Path: path})
	}
	slices.SortFunc(saved, func(a, b native.Saved) int { return int(a.Step - b.Step) })
	return saved, nil
}

// stepOf reads the step of a checkpoint's folder, global_step_60; 0 for none.
func stepOf(path string) int64 {
	_, text, ok := strings.Cut(filepath.Base(path), "global_step_")
	if !ok {
		return 0
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// wholeShards tells whether every rank's shard of the policy is there; a
// checkpoint without shards is of another backend and taken as it is.
func wholeShards(path string) (bool, error) {
	world, ranks, err := shards(path)
	return err == nil && (world == 0 || ranks == world), err
}

// shards counts the policy's shards and reads how many there should be.
func shards(path string) (world, ranks int, err error) {
	entries, err := os.ReadDir(filepath.Join(path, "actor"))
	if err != nil {
		return 0, 0, err
	}
	for _, e := range entries {
		m := shardName.FindStringSubmatch(e.Name())
		if m == nil {
			continue
		}
		if world, err = strconv.Atoi(m[1]); err != nil {
			return 0, 0, err
		}
		ranks++
	}
	return world, ranks, nil
}

// WorldSize is the number of devices that wrote a checkpoint in FSDP shards: a
// resumed run needs as many. 0 means that the checkpoint is not in shards.
func WorldSize(path string) (int, error) {
	world, _, err := shards(path)
	if err != nil {
		return 0, fmt.Errorf("checkpoint %s: %w", path, err)
	}
	return world, nil
}
