//! Media types, read as media types: parameters, letter case and wildcards count.

use http::header::{GetAll, HeaderValue};

/// What a client accepts. Nothing said is everything accepted (RFC 9110, 12.5.1).
pub(super) struct Accept<'a>(Vec<Range<'a>>);

struct Range<'a> {
    main: &'a str,
    sub: &'a str,
    refused: bool,
}

impl<'a> Accept<'a> {
    pub(super) fn parse(values: GetAll<'a, HeaderValue>) -> Self {
        let texts = values.iter().filter_map(|value| value.to_str().ok());
        Self(texts.flat_map(|text| text.split(',')).filter_map(Range::parse).collect())
    }

    pub(super) fn any_of(&self, types: &[&str]) -> bool {
        self.0.is_empty() || types.iter().any(|kind| self.allows(kind))
    }

    /// The most specific range that matches decides.
    fn allows(&self, kind: &str) -> bool {
        let (main, sub) = kind.split_once('/').unwrap_or((kind, ""));
        let matching = self.0.iter().filter_map(|range| Some((range.precision(main, sub)?, range)));
        matching.max_by_key(|(precision, _)| *precision).is_some_and(|(_, range)| !range.refused)
    }
}

impl<'a> Range<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (main, sub) = parts.next()?.split_once('/')?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
        let refused = weight.is_some_and(|weight| weight.parse::<f32>().is_ok_and(|weight| weight <= 0.0));
        Some(Self { main, sub, refused })
    }

    fn precision(&self, main: &str, sub: &str) -> Option<u8> {
        match (self.main, self.sub) {
            ("*", "*") => Some(0),
            (ours, "*") if ours.eq_ignore_ascii_case(main) => Some(1),
            (ours, theirs) if ours.eq_ignore_ascii_case(main) && theirs.eq_ignore_ascii_case(sub) => Some(2),
            _ => None,
        }
    }
}

/// Whether a Content-Type is JSON, with or without parameters.
pub(super) fn is_json(value: &HeaderValue) -> bool {
    let kind = value.to_str().ok().and_then(|text| text.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

#[cfg(test)]
mod tests {
    use super::{Accept, is_json};
    use http::header::{ACCEPT, HeaderMap, HeaderValue};

    fn served(accept: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        if let Some(text) = accept {
            headers.insert(ACCEPT, HeaderValue::from_str(text).expect("a header value"));
        }
        Accept::parse(headers.get_all(ACCEPT)).any_of(&["application/json", "text/event-stream"])
    }

    #[test]
    fn an_absent_one_sided_or_wild_accept_is_served() {
        assert!(served(None));
        for good in [
            "*/*",
            "application/*",
            "application/json",
            "text/event-stream",
            "application/json;q=0.5, text/event-stream",
            "APPLICATION/JSON",
            "text/html, */*;q=0.1",
        ] {
            assert!(served(Some(good)), "{good}");
        }
    }

    #[test]
    fn an_accept_that_allows_neither_type_is_not() {
        for bad in ["text/html", "application/json;q=0, */*;q=0", "application/json;q=0", "text/plain, image/*"] {
            assert!(!served(Some(bad)), "{bad}");
        }
    }

    #[test]
    fn a_content_type_is_json_whatever_its_parameters_and_case() {
        for (text, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("application/json;charset=UTF-8", true),
            ("text/plain", false),
            ("application/jsonx", false),
            ("text/plain; application/json", false),
        ] {
            assert_eq!(is_json(&HeaderValue::from_static(text)), json, "{text}");
        }
    }
}
