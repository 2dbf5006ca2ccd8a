package server

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// loadToken reads the data folder's token, making it on first use. The file is
// readable by its owner only: on a shared machine the token is what keeps
// others from starting processes here.
func loadToken(data string) (string, error) {
	path := filepath.Join(data, tokenFile)
	b, err := os.ReadFile(path)
	switch {
	case err == nil:
		token := strings.TrimSpace(string(b))
		if len(token) < 16 {
			return "", fmt.Errorf("token file %s holds no usable token: delete it and a new one is made", path)
		}
		return token, os.Chmod(path, 0o600)
	case !errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("read token: %w", err)
	}
	var raw [24]byte
	_, _ = rand.Read(raw[:]) // never fails
	token := hex.EncodeToString(raw[:])
	if err := os.WriteFile(path, []byte(token), 0o600); err != nil {
		return "", fmt.Errorf("write token: %w", err)
	}
	return token, nil
}
