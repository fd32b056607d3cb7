//! Answers that nobody reads, and bodies that nobody finishes, take a bounded amount of memory.
