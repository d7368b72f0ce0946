//! The programs of the stories: real sockets, one file each. They log what they write and read.
