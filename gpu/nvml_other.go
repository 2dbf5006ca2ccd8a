//go:build !cgo || !linux

package gpu

import (
	"errors"
	"time"
)

// newLibrary says that NVIDIA's library cannot be used in this build.
func newLibrary(time.Duration) (driver, error) {
	return nil, errors.New("nvml: this program was built without cgo")
}
