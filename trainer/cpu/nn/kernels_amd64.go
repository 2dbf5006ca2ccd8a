package nn

// assemblyKernels lists the assembly kernels that this CPU can run, best first.
func assemblyKernels() []namedKernels { return nil }
