//! A field that was looked up in a received command.

use std::{any::type_name, borrow::Cow, fmt, str::FromStr};

use crate::command::FieldError;

/// A field of a received command that was [asked for](crate::Command::select), whether it has one or not.
///
/// Its `Debug` shows the name and never the value.
#[derive(Clone)]
pub struct Field<'a> {
    name: &'static str,
    value: Option<Cow<'a, str>>,
}

impl<'a> Field<'a> {
    /// A field with a value that is not empty.
    #[inline]
    pub(super) fn new(name: &'static str, value: Option<Cow<'a, str>>) -> Self {
        Self { name, value }
    }

    /// The name that was asked for.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The value; `None` where the field is missing, null or empty.
    #[must_use]
    pub fn value(&self) -> Option<&str> {
        self.value.as_deref()
    }

    /// The value, which is borrowed from the command's frame unless it holds escapes; `None` where the field is
    /// missing, null or empty.
    #[must_use]
    pub fn into_value(self) -> Option<Cow<'a, str>> {
        self.value
    }

    /// The value as a `T`; `None` where the field is missing, null or empty.
    ///
    /// # Errors
    ///
    /// The value is not a `T`.
    pub fn parse<T: FromStr>(&self) -> Result<Option<T>, FieldError> {
        self.value.as_deref().map(|value| value.parse().map_err(|_| self.error::<T>())).transpose()
    }

    /// The value as a `T`, where the command makes no sense without it.
    ///
    /// # Errors
    ///
    /// The field is missing, null or empty, or its value is not a `T`.
    pub fn require<T: FromStr>(&self) -> Result<T, FieldError> {
        match self.value.as_deref().and_then(|value| value.parse().ok()) {
            Some(value) => Ok(value),
            None => Err(self.error::<T>()),
        }
    }

    #[cold]
    fn error<T>(&self) -> FieldError {
        FieldError::new(self.name, self.value(), type_name::<T>())
    }
}

impl fmt::Debug for Field<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Field")
            .field("name", &self.name)
            .field("value_len", &self.value().map(str::len))
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_that_is_missing_or_does_not_parse_is_named() {
        let missing = Field::new("offset", None);
        assert_eq!(missing.parse::<i64>(), Ok(None));
        assert_eq!(missing.require::<i64>(), Err(FieldError::new("offset", None, "i64")));

        let wrong = Field::new("offset", Some("ten".into()));
        let error = FieldError::new("offset", Some("ten"), "i64");
        assert_eq!((wrong.parse::<i64>(), wrong.require::<i64>()), (Err(error.clone()), Err(error)));

        let right = Field::new("offset", Some("10".into()));
        assert_eq!((right.parse(), right.require()), (Ok(Some(10)), Ok(10)));
        assert_eq!((right.name(), right.value()), ("offset", Some("10")));
        assert_eq!(right.into_value().as_deref(), Some("10"));
    }

    #[test]
    fn debug_shows_no_value() {
        let field = Field::new("AccessKey", Some("secret".into()));
        assert_eq!(format!("{field:?}"), r#"Field { name: "AccessKey", value_len: Some(6) }"#);
    }
}
