package travel

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// Origin is what a world was made from. Two worlds of one origin are equal.
type Origin struct {
	Kind    string            `json:"kind"`              // tables, generated
	Detail  map[string]string `json:"detail,omitempty"`  // seed, size, version of the generator
	Sources []Source          `json:"sources,omitempty"` // the files
}

// Source is one file that a world was read from.
type Source struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Time   int64  `json:"time"`   // modification, Unix ns
	SHA256 string `json:"sha256"` // filled in when the cache is written
}

// key names the cache file of an origin: the same files, whatever is in them.
func (o Origin) key() string {
	paths := make([]string, len(o.Sources))
	for i, s := range o.Sources {
		paths[i] = s.Path
	}
	src, _ := json.Marshal([]any{o.Kind, o.Detail, paths}) // texts cannot fail
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:8])
}

// TableOrigin describes a database folder. detail is what else the world depends on.
func TableOrigin(dir string, detail map[string]string) (Origin, error) {
	o := Origin{Kind: "tables", Detail: detail}
	for _, name := range []string{"background/citySet_with_states.txt", "accommodations/clean_accommodations_2022.csv",
		"restaurants/clean_restaurant_2022.csv", "attractions/attractions.csv", "googleDistanceMatrix/distance.csv", flightFile} {
		path, err := filepath.Abs(find(dir, name))
		if err != nil {
			return o, err
		}
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && name == flightFile {
			continue
		}
		if err != nil {
			return o, fmt.Errorf("tables: %w", err)
		}
		o.Sources = append(o.Sources, Source{Path: path, Size: info.Size(), Time: info.ModTime().UnixNano()})
	}
	return o, nil
}

// HasFlights tells whether a database folder holds a flight table.
func HasFlights(dir string) bool {
	_, err := os.Stat(find(dir, flightFile))
	return err == nil
}

// Cache says how a world came to be.
type Cache struct {
	Path  string        // of the cache file; "" = none
	Hit   bool          // the world came from it
	Why   string        // why not, or why it could not be kept
	Bytes int64         // of the file
	Took  time.Duration // to make the world ready
}

// OpenWorld returns the world of an origin: mapped from its file in the cache
// folder, or made by build and kept there. dir "" uses no cache. A cache file
// that is damaged, of another version or older than its sources is made again;
// one that cannot be written is no error. A world keeps its file mapped for
// the life of the process.
func OpenWorld(dir string, o Origin, build func() (*World, error)) (*World, Cache, error) {
	began := time.Now()
	var c Cache
	if dir != "" {
		c.Path = filepath.Join(dir, o.key()+".world")
		w, err := c.open(o)
		if err == nil {
			c.Hit, c.Took = true, time.Since(began)
			return w, c, nil
		}
		c.Why = err.Error()
	}
	w, err := build()
	if err != nil {
		return nil, c, err
	}
	if dir != "" {
		if err := c.save(o, w); err != nil {
			c.Path, c.Why = "", "not kept: "+err.Error()
		}
	}
	c.Took = time.Since(began)
	return w, c, nil
}

// LoadWorldCached is LoadWorld through a cache folder.
func LoadWorldCached(dir, cache string) (*World, Cache, error) {
	if cache == "" {
		return OpenWorld("", Origin{}, func() (*World, error) { return LoadWorld(dir) })
	}
	o, err := TableOrigin(dir, nil)
	if err != nil {
		return nil, Cache{}, err
	}
	return OpenWorld(cache, o, func() (*World, error) { return LoadWorld(dir) })
}

// CacheDir is where worlds are kept unless a caller says otherwise.
func CacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "alidade", "worlds")
}

func (c *Cache) open(o Origin) (*World, error) {
	f, err := os.Open(c.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errors.New("there is no cache file yet")
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	c.Bytes = info.Size()
	if info.Size() < preludeBytes {
		return nil, errCacheFormat
	}
	src, err := syscall.Mmap(int(f.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", c.Path, err)
	}
	w, err := openMapped(src, o)
	if err != nil {
		_ = syscall.Munmap(src) // nothing points into it
	}
	return w, err
}

func openMapped(src []byte, o Origin) (*World, error) {
	h, body, err := readHeader(src)
	if err != nil {
		return nil, err
	}
	if err := fresh(h.Origin.Sources, o.Sources); err != nil {
		return nil, err
	}
	return readBody(h, body)
}

// fresh compares the files a cache was made from with those of today: by size
// and time, and by content where the time alone differs.
func fresh(old, now []Source) error {
	if len(old) != len(now) {
		return errors.New("other files than when it was made")
	}
	for i := range now {
		if old[i].Path != now[i].Path || old[i].Size != now[i].Size {
			return fmt.Errorf("%s has changed", now[i].Path)
		}
		if old[i].Time == now[i].Time {
			continue
		}
		sum, err := fileHash(now[i].Path)
		if err != nil {
			return err
		}
		if sum != old[i].SHA256 {
			return fmt.Errorf("%s has changed", now[i].Path)
		}
	}
	return nil
}

func fileHash(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// save writes the cache file beside its place and renames it, so that others
// see the whole of it or none.
func (c *Cache) save(o Origin, w *World) error {
	o.Sources = slices.Clone(o.Sources)
	for i := range o.Sources {
		sum, err := fileHash(o.Sources[i].Path)
		if err != nil {
			return err
		}
		o.Sources[i].SHA256 = sum
	}
	if err := os.MkdirAll(filepath.Dir(c.Path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(c.Path), ".world-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails once it is renamed
	out := bufio.NewWriterSize(f, 1<<20)
	err = writeCache(out, o, w.Hash(), w.Tables(), &w.flights)
	if err == nil {
		err = out.Flush()
	}
	if err == nil {
		err = f.Chmod(0o644)
	}
	if info, e := f.Stat(); e == nil {
		c.Bytes = info.Size()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), c.Path)
	}
	return err
}

// Tables returns the world's rows without its flights, cities in file order
// and rows in file order within their city.
func (w *World) Tables() Tables {
	t := Tables{Cities: w.cities}
	for _, c := range sortedKeys(w.hotels) {
		t.Hotels = append(t.Hotels, w.hotels[c]...)
	}
	for _, c := range sortedKeys(w.restaurants) {
		t.Restaurants = append(t.Restaurants, w.restaurants[c]...)
	}
	for _, c := range sortedKeys(w.attractions) {
		t.Attractions = append(t.Attractions, w.attractions[c]...)
	}
	for _, k := range sortedRoutes(w.distances) {
		t.Distances = append(t.Distances, w.distances[k].Distance)
	}
	return t
}
