"""The aclnn C interface itself: two phases, descriptors, executors, streams and device memory, through ctypes."""
