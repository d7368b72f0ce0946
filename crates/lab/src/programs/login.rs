//! Joining a game: the client asks, the server answers with many small writes, some times over.

use std::io::{Read, Write};
use std::net::TcpStream;

use anyhow::{Context, Result};
use serde::Serialize;

/// Bytes of what the client asks at each step.
const REQUEST: usize = 40;
/// The smallest and the largest of the server's writes, in bytes.
const WRITES: (usize, usize) = (4, 80);

/// A login. The default has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Login {
    /// How often the client asks and is answered.
    pub steps: usize,
    /// Writes of the server in each answer.
    pub writes: usize,
}

impl Login {
    /// Bytes of the `n`-th write of an answer: from 4 to 80 and again, in steps of 12.
    fn size(n: usize) -> usize {
        WRITES.0 + n * 12 % (WRITES.1 - WRITES.0 + 1)
    }

    /// The server's side.
    pub(super) fn serve(self, mut stream: &TcpStream) -> Result<()> {
        for _ in 0..self.steps {
            stream.read_exact(&mut [0; REQUEST]).context("the client left during its login")?;
            for n in 0..self.writes {
                stream.write_all(&vec![0; Self::size(n)])?;
            }
        }
        Ok(())
    }

    /// The client's side.
    pub(super) fn join(self, mut stream: &TcpStream) -> Result<()> {
        let mut answer = vec![0; (0..self.writes).map(Self::size).sum()];
        for _ in 0..self.steps {
            stream.write_all(&[0; REQUEST])?;
            stream.read_exact(&mut answer).context("the server left during the login")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_as_small_as_the_story_says() {
        assert!((0..100).map(Login::size).all(|size| (4..=80).contains(&size)));
        assert!((0..100).map(Login::size).any(|size| size > 70));
    }
}
