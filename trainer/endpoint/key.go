package endpoint

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"alidade/ablation"
)

// redacted stands wherever a server sends the key back.
const redacted = "[key]"

// readKey reads the key that the recipe names; "" when it names none. The
// error never holds it. data is the data folder.
func readKey(e ablation.Endpoint, data string) (string, error) {
	switch {
	case e.KeyEnv != "":
		key := strings.TrimSpace(os.Getenv(e.KeyEnv))
		if key == "" {
			return "", fmt.Errorf("recipe.endpoint.key_env: the variable %s was not set where the server was started, or the run is on another machine; endpoint.key_file works there too", e.KeyEnv)
		}
		return checkKey(key, "recipe.endpoint.key_env")
	case e.KeyFile != "":
		path := filepath.Join(data, filepath.FromSlash(e.KeyFile))
		info, err := os.Stat(path)
		if err != nil {
			return "", fmt.Errorf("recipe.endpoint.key_file: %w", err)
		}
		if info.Mode().Perm()&0o077 != 0 {
			return "", fmt.Errorf("recipe.endpoint.key_file: %s has mode %04o, others could read it; chmod 600 it", path, info.Mode().Perm())
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("recipe.endpoint.key_file: %w", err)
		}
		key := strings.TrimSpace(string(src))
		if key == "" {
			return "", fmt.Errorf("recipe.endpoint.key_file: %s is empty", path)
		}
		return checkKey(key, "recipe.endpoint.key_file")
	}
	return "", nil
}

func checkKey(key, field string) (string, error) {
	if len(key) < 8 || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("%s: not a key: want at least 8 printable characters on one line", field)
	}
	return key, nil
}

// hide takes the key out of what a server sent, so that nothing that is kept
// or shown can hold it.
func hide(body []byte, key string) []byte {
	if key == "" {
		return body
	}
	return bytes.ReplaceAll(body, []byte(key), []byte(redacted))
}
