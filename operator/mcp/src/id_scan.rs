//! Finds the `id` of a message that cannot be decoded, because it is too long or not UTF-8, so that its request fails
//! at once and by name. Works on a stream of pieces with constant memory.

/// Ids are our own numbers; anything longer is none of them.
const MAX_TOKEN: usize = 24;

/// Walks over JSON text and remembers the value of the outermost object's `id`.
#[derive(Default)]
pub(crate) struct IdScan {
    depth: u32,
    in_text: bool,
    escaped: bool,
    /// The characters of the current outermost text or number, as far as they could matter.
    token: Vec<u8>,
    /// The last outermost text, which is a key if a colon follows.
    last_text: Vec<u8>,
    after_id_key: bool,
    found: Option<u64>,
}

impl IdScan {
    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.step(byte);
        }
    }

    /// The id, if the text had one of ours.
    pub(crate) fn found(&self) -> Option<u64> {
        self.found
    }

    fn step(&mut self, byte: u8) {
        if self.in_text {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' => self.escaped = true,
                b'"' => {
                    self.in_text = false;
                    if self.depth == 1 {
                        self.last_text = std::mem::take(&mut self.token);
                    }
                }
                _ => self.keep(byte),
            }
            return;
        }
        match byte {
            b'"' => {
                self.in_text = true;
                self.token.clear();
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.token.clear();
            }
            b':' if self.depth == 1 => {
                self.after_id_key = self.last_text == b"id";
                self.last_text.clear();
            }
            b',' | b'}' | b']' => {
                if self.depth == 1 && self.after_id_key {
                    let value = if self.token.is_empty() {
                        &self.last_text
                    } else {
                        &self.token
                    };
                    self.found = std::str::from_utf8(value)
                        .ok()
                        .and_then(|text| text.parse().ok());
                    self.after_id_key = false;
                }
                self.token.clear();
                if byte != b',' {
                    self.depth = self.depth.saturating_sub(1);
                }
            }
            _ if byte.is_ascii_whitespace() => {}
            _ => self.keep(byte),
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.token.len() < MAX_TOKEN {
            self.token.push(byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scan(text: &str, step: usize) -> Option<u64> {
        let mut scan = IdScan::default();
        for piece in text.as_bytes().chunks(step) {
            scan.feed(piece);
        }
        scan.found()
    }

    #[test]
    fn the_outermost_id_is_found_wherever_it_stands() {
        let long = "x\\\"id\\\":9,".repeat(1000);
        for (text, id) in [
            (
                r#"{"jsonrpc":"2.0","id":7,"result":{"id":8}}"#.to_owned(),
                Some(7),
            ),
            (
                format!(r#"{{"result":{{"id":8,"text":"{long}"}},"jsonrpc":"2.0", "id" : 12 }}"#),
                Some(12),
            ),
            (r#"{"id":"15","result":{}}"#.to_owned(), Some(15)),
            (r#"{"text":"id","x":3}"#.to_owned(), None),
            (r#"{"result":{"id":3}}"#.to_owned(), None),
            (r#"{"id":null,"error":{}}"#.to_owned(), None),
            ("server listening, id: 5".to_owned(), None),
        ] {
            for step in [1, 7, 100_000] {
                assert_eq!(scan(&text, step), id, "{text:.60}");
            }
        }
    }
}
