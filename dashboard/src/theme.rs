//! Dark, light, or as the system says. Kept in a cookie so that the server's first byte is right.

/// What the reader chose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Theme {
    #[default]
    System,
    Light,
    Dark,
}

/// Name of the cookie.
pub const COOKIE: &str = "fencepost-theme";

impl Theme {
    /// From a cookie's or an address's word; anything unknown follows the system.
    pub fn parse(word: &str) -> Self {
        match word {
            "light" => Self::Light,
            "dark" => Self::Dark,
            _ => Self::System,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Light => "light",
            Self::Dark => "dark",
        }
    }

    /// From a request's `Cookie` header.
    pub fn of_cookies(header: &str) -> Self {
        header
            .split(';')
            .filter_map(|pair| pair.trim().split_once('='))
            .find(|(name, _)| *name == COOKIE)
            .map(|(_, value)| Self::parse(value))
            .unwrap_or_default()
    }

    /// The cookie that keeps it for a year; no secret is in it.
    pub fn cookie(self, path: &str) -> String {
        let path = if path.is_empty() { "/" } else { path };
        format!(
            "{COOKIE}={}; Path={path}; Max-Age=31536000; SameSite=Lax",
            self.word()
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_comes_back_as_it_was_set() {
        for theme in [Theme::System, Theme::Light, Theme::Dark] {
            let cookie = theme.cookie("");
            let header = format!("other=1; {}", cookie.split(';').next().unwrap_or_default());
            assert_eq!(Theme::of_cookies(&header), theme);
        }
        assert_eq!(Theme::of_cookies("fencepost-theme=<script>"), Theme::System);
    }
}
