//! Secret bytes as what they are used for: a header value, signing keys, certificates.
//!
//! In: the bytes of a Secret's key. Out: the value to use, or what is wrong with it, in words that show nothing of it.

use base64::{Engine, engine::general_purpose::STANDARD};
use http::HeaderValue;

use crate::manifest::Secret;

/// What is wrong, and what to do.
#[derive(Debug, PartialEq, Eq)]
pub struct Unfit {
    pub message: &'static str,
    pub fix: &'static str,
}

/// Bytes below which Standard Webhooks calls a signing secret too short.
const LEAST_SIGNING_BYTES: usize = 24;

/// The header value that carries a credential. An editor's newline at the end is no part of it.
pub fn header_value(header: &str, secret: &Secret) -> Result<Secret, Unfit> {
    let token = secret.expose().trim_ascii();
    if token.is_empty() {
        return Err(Unfit {
            message: "the credential is empty",
            fix: "write the token into the Secret",
        });
    }
    let is_bearer = header.eq_ignore_ascii_case("authorization");
    if is_bearer && token.len() > 7 && token[..7].eq_ignore_ascii_case(b"bearer ") {
        return Err(Unfit {
            message: "the credential begins with Bearer, which is added when it is sent",
            fix: "write the token alone into the Secret",
        });
    }
    let value = if is_bearer {
        [b"Bearer ", token].concat()
    } else {
        token.to_vec()
    };
    match HeaderValue::from_bytes(&value) {
        Ok(_) => Ok(Secret::new(value)),
        Err(_) => Err(Unfit {
            message: "the credential holds characters that no header may carry",
            fix: "write the token alone, on one line, into the Secret",
        }),
    }
}

/// The signing keys in a Secret's key: one, or several side by side while one is replaced.
#[derive(Debug, PartialEq, Eq)]
pub struct SigningKeys {
    pub keys: Vec<Secret>,
    /// One of them is shorter than Standard Webhooks asks for.
    pub weak: bool,
}

/// Keys of HMAC, decoded: `whsec_` and base64, or text of at least 24 bytes taken as it is.
pub fn signing_keys(secret: &Secret) -> Result<SigningKeys, Unfit> {
    let invalid = Unfit {
        message: "the signing secret is no Standard Webhooks secret",
        fix: "write whsec_ and at least 24 bytes in base64, or at least 24 bytes of text; to make one: echo whsec_$(head -c 32 /dev/urandom | base64)",
    };
    let mut found = SigningKeys {
        keys: Vec::new(),
        weak: false,
    };
    for word in secret
        .expose()
        .split(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty())
    {
        let key = match word.strip_prefix(b"whsec_") {
            Some(encoded) => match STANDARD.decode(encoded) {
                Ok(key) if !key.is_empty() => key,
                _ => return Err(invalid),
            },
            None if word.len() >= LEAST_SIGNING_BYTES => word.to_vec(),
            None => return Err(invalid),
        };
        found.weak |= key.len() < LEAST_SIGNING_BYTES;
        found.keys.push(Secret::new(key));
    }
    if found.keys.is_empty() {
        Err(invalid)
    } else {
        Ok(found)
    }
}

/// PEM certificates. They are parsed where they are used; here it is seen that there is one.
pub fn certificates(secret: &Secret) -> Result<Vec<u8>, Unfit> {
    let begin = b"-----BEGIN CERTIFICATE-----";
    if secret
        .expose()
        .windows(begin.len())
        .any(|window| window == begin)
    {
        Ok(secret.expose().to_vec())
    } else {
        Err(Unfit {
            message: "there is no PEM certificate in it",
            fix: "write the CA as PEM: -----BEGIN CERTIFICATE----- and so on",
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn authorization_is_a_bearer_and_others_are_verbatim() {
        assert_eq!(
            header_value("authorization", &Secret::new(*b"abc\n"))
                .unwrap()
                .expose(),
            b"Bearer abc"
        );
        assert_eq!(
            header_value("X-Api-Key", &Secret::new(*b"abc"))
                .unwrap()
                .expose(),
            b"abc"
        );
        for bad in ["", " \n", "Bearer abc", "a\nb", "a\u{7f}b"] {
            assert!(
                header_value("Authorization", &Secret::new(bad)).is_err(),
                "{bad:?}"
            );
        }
    }

    #[test]
    fn signing_secrets_of_the_standard() {
        let keys = signing_keys(&Secret::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n")).unwrap();
        assert_eq!((keys.keys[0].expose().len(), keys.weak), (24, false));
        assert!(signing_keys(&Secret::new("whsec_c2hvcnQ=")).unwrap().weak);
        assert_eq!(
            signing_keys(&Secret::new(
                "0123456789012345678901234 whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
            ))
            .unwrap()
            .keys
            .len(),
            2
        );
        for bad in ["", "whsec_", "whsec_???", "short"] {
            assert!(signing_keys(&Secret::new(bad)).is_err(), "{bad:?}");
        }
    }
}
