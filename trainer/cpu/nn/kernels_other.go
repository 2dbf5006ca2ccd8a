//go:build !amd64

package nn

// assemblyKernels lists the assembly kernels: none on this architecture.
func assemblyKernels() []namedKernels { return nil }
