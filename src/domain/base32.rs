//! Crockford's base32 in lower case: the alphabet of referral codes and partner keys.
//!
//! It leaves out i, l, o and u, so a code read aloud or copied by hand is not mistaken for another.

const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// Writes the first `CHARS` × 5 bits of `bytes`; bits past the end count as zero.
pub fn encode<const CHARS: usize>(bytes: &[u8]) -> [u8; CHARS] {
    std::array::from_fn(|i| {
        let bit = i * 5;
        let high = u16::from(bytes.get(bit / 8).copied().unwrap_or(0));
        let low = u16::from(bytes.get(bit / 8 + 1).copied().unwrap_or(0));
        let window = high << 8 | low;
        ALPHABET[usize::from(window >> (11 - bit % 8)) & 31]
    })
}

/// The same as a text.
pub fn text<const CHARS: usize>(bytes: &[u8]) -> String {
    encode::<CHARS>(bytes).into_iter().map(char::from).collect()
}

/// Reads back `N` bytes that [`encode`] wrote; nothing else, not even other bits in the last character.
pub fn decode<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    for (i, character) in text.iter().enumerate() {
        let value = ALPHABET.iter().position(|known| known == character)?;
        for bit in 0..5 {
            if value >> (4 - bit) & 1 == 1 {
                let at = i * 5 + bit;
                *bytes.get_mut(at / 8)? |= 1 << (7 - at % 8);
            }
        }
    }
    (text.len() == (N * 8).div_ceil(5)).then_some(bytes)
}

/// The five bits that a character stands for.
pub fn value(character: u8) -> Option<u8> {
    ALPHABET.iter().position(|known| *known == character).map(|place| place as u8)
}

/// The character that stands for five bits.
pub fn character(value: u8) -> u8 {
    ALPHABET[usize::from(value & 31)]
}

/// Whether every byte is one that [`encode`] writes.
pub fn is_canonical(text: &[u8]) -> bool {
    text.iter().all(|byte| ALPHABET.contains(byte))
}

/// The canonical form of a character a person typed: any case, and the look-alikes as Crockford reads them.
pub fn fold(typed: u8) -> Option<u8> {
    let folded = match typed.to_ascii_lowercase() {
        b'o' => b'0',
        b'i' | b'l' => b'1',
        other => other,
    };
    ALPHABET.contains(&folded).then_some(folded)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_come_out_in_order() {
        assert_eq!(&encode::<8>(&[0xff; 5]), b"zzzzzzzz");
        assert_eq!(&encode::<8>(&[0; 5]), b"00000000");
        assert_eq!(&encode::<2>(&[0b0000_1000, 0b0100_0000]), b"11");
        assert_eq!(&encode::<8>(&[0x00, 0x44, 0x32, 0x14, 0xc7]), b"01234567");
        assert_eq!(&encode::<7>(&[0xff; 4]), b"zzzzzzr", "35 bits of 32: the last three are zero");
    }

    #[test]
    fn what_was_written_reads_back_and_nothing_else() {
        for bytes in [[0; 8], [0xff; 8], [1, 2, 3, 4, 5, 6, 7, 8]] {
            assert_eq!(decode::<8>(&encode::<13>(&bytes)), Some(bytes));
        }
        for bad in [&b""[..], b"000000000000", b"00000000000000", b"000000000000z", b"000000000000u"] {
            assert_eq!(decode::<8>(bad), None);
        }
    }

    #[test]
    fn look_alikes_fold() {
        assert_eq!(fold(b'O'), Some(b'0'));
        assert_eq!(fold(b'l'), Some(b'1'));
        assert_eq!(fold(b'Z'), Some(b'z'));
        assert_eq!(fold(b'u'), None);
        assert_eq!(fold(b'-'), None);
    }
}
