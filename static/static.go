// Package static holds the browser side: CSS and TypeScript sources, bundled
// by esbuild into dist, which is embedded. A build without the bundle compiles
// and serves pages that say how to make it.
package static

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"path"
	"strings"
)

//go:embed all:dist
var dist embed.FS

// A File is one embedded asset.
type File struct {
	Body []byte
	Type string // media type
	Hash string // of the body; names the version in its address
}

// Files returns the bundled assets by name ("app.js"), the place holder and
// hidden files left out. The map is empty when nothing has been bundled.
func Files() (map[string]File, error) {
	files := map[string]File{}
	err := fs.WalkDir(dist, "dist", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), ".") {
			return err
		}
		body, err := dist.ReadFile(p)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(body)
		files[strings.TrimPrefix(p, "dist/")] = File{Body: body, Type: mediaType(p), Hash: hex.EncodeToString(sum[:6])}
		return nil
	})
	return files, err
}

// mediaType does not ask the operating system: its tables differ by machine.
func mediaType(p string) string {
	switch path.Ext(p) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".map", ".json":
		return "application/json"
	case ".txt":
		return "text/plain; charset=utf-8"
	}
	return "application/octet-stream"
}
