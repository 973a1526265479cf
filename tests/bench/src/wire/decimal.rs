//! Numbers in decimal.

/// Appends `value`, digit by digit from its end.
pub(crate) fn write(out: &mut Vec<u8>, value: i64) {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = value.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes `value` into exactly the room that is there, with leading zeros.
pub(crate) fn patch(room: &mut [u8], mut value: u32) {
    for digit in room.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// The integer at the start of `bytes`, and how many bytes it takes; `None` where there is none.
pub(crate) fn read(bytes: &[u8]) -> Option<(i64, usize)> {
    let sign = usize::from(bytes.first() == Some(&b'-'));
    let digits = bytes.get(sign..)?.iter().take(18).take_while(|byte| byte.is_ascii_digit());
    let (value, len) =
        digits.fold((0_i64, 0), |(value, len), digit| (value * 10 + i64::from(digit - b'0'), len + 1));
    (len > 0).then_some((if sign == 1 { -value } else { value }, sign + len))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        for value in [0, 7, -7, 1_234_567_890, i64::from(i32::MIN), 1_760_000_000_000] {
            let mut out = b"x".to_vec();
            write(&mut out, value);
            assert_eq!(out, format!("x{value}").into_bytes());
            assert_eq!(read(&out[1..]), Some((value, out.len() - 1)));
        }
        assert_eq!(read(b"-"), None);
        let mut room = *b"..........";
        patch(&mut room, 1_000_000_023);
        assert_eq!(&room, b"1000000023");
    }
}
