/* What a container leaves of a machine: the limits of a process's cgroups.  Each is the smallest on
 * the way up from the cgroup, as in `self`, to the mount at `root`; usually these are
 * /proc/self/cgroup and /sys/fs/cgroup.  INFINITY where there is no limit. */
#pragma once

/* Returns how many processors' time the process has. */
double cgroup_processors(const char *self, const char *root);

/* Returns how many bytes of memory the process may hold. */
double cgroup_memory(const char *self, const char *root);

/* Returns how many processors' time a container leaves this process; INFINITY: all of it. */
double processors_here(void);
/* Returns the bytes of memory of this machine, or those that a container leaves this process. */
double memory_here(void);
