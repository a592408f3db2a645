//! Which resources a canary takes: a stable hash, so that 5 % stays the same 5 % and 25 % contains it.

use sha2::{Digest, Sha256};

/// Hundredths of a percent: fine enough for one resource in a catalog of ten thousand.
const BUCKETS: u64 = 10_000;

/// The bucket of a resource, below 10000. Parts are separated by a byte that none of them holds.
pub fn bucket(server_uid: &str, subject_uid: &str, uri: &str) -> u64 {
    let digest = Sha256::digest([server_uid, subject_uid, uri].join("\0"));
    let first = digest
        .iter()
        .take(8)
        .fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    first % BUCKETS
}

/// Whether a canary of `percent` takes the bucket.
pub const fn in_cohort(bucket: u64, percent: u8) -> bool {
    bucket < percent as u64 * (BUCKETS / 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn larger_canaries_contain_smaller_ones_and_shares_are_near() {
        let buckets: Vec<u64> = (0..10_000)
            .map(|n| bucket("server", "subject", &format!("docs:///{n}")))
            .collect();
        let taken = |percent| {
            buckets
                .iter()
                .filter(|bucket| in_cohort(**bucket, percent))
                .count()
        };
        assert_eq!((taken(0), taken(100)), (0, 10_000));
        // Four standard deviations of a binomial share at this size are below 175.
        assert!(
            taken(5).abs_diff(500) < 175 && taken(25).abs_diff(2_500) < 175,
            "{} {}",
            taken(5),
            taken(25)
        );
        assert!(
            buckets
                .iter()
                .all(|bucket| !in_cohort(*bucket, 5) || in_cohort(*bucket, 25))
        );
    }

    #[test]
    fn the_function_is_fixed() {
        // A changed hash would move every cohort of every installation.
        assert_eq!(bucket("s", "u", "a:b"), 2806);
    }
}
