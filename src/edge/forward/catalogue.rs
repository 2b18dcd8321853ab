//! The answer to `tools/list` for a credential with bounds: the tools that it may call, and no other.
//!
//! It is for the eye alone: what is not in the list is refused when it is called. An answer that is fetched again from a
//! session's stream is looked at like the first one.

use serde_json::value::RawValue;

use crate::edge::{Cause, Members};
use crate::identity::reach::{Judgement, Reach};

use super::edited::{Edits, edited, objects, place, private};

/// The message as the client is to see it, if that is not as it is. `caches`: it says how long it may be kept.
pub(super) fn message(text: &[u8], reach: &Reach, caches: bool) -> Result<Option<Vec<u8>>, Cause> {
    // What is no JSON shows no tool.
    let Ok(raw) = serde_json::from_slice::<&RawValue>(text) else { return Ok(None) };
    let mut edits = Edits::new();
    for result in objects(raw)?.iter().flat_map(|top| top.all("result")) {
        let Some(members) = objects(result)? else { continue };
        for tools in members.all("tools") {
            edits.extend(permitted(tools, reach).map(|permitted| (place(text, tools.get()), permitted)));
        }
        if caches {
            // It is another list for others of the same tenant.
            private(text, result, &members, &mut edits);
        }
    }
    Ok(edited(text, edits))
}

/// A list without the tools that may not be called, if there are such.
fn permitted(tools: &RawValue, reach: &Reach) -> Option<String> {
    let all: Vec<&RawValue> = serde_json::from_str(tools.get()).ok()?;
    let may_be_called = |tool: &&RawValue| {
        let name = Members::read(tool).and_then(|members| members.text("name"));
        name.is_some_and(|name| reach.judge(&name) == Judgement::Permitted)
    };
    let kept: Vec<_> = all.iter().copied().filter(may_be_called).map(RawValue::get).collect();
    (kept.len() < all.len()).then(|| format!("[{}]", kept.join(",")))
}

#[cfg(test)]
mod tests {
    use super::message;
    use crate::identity::reach::{Pattern, Reach, Tools};

    fn check(before: &str, caches: bool, after: Option<&str>) {
        let allow = ["a", "b_*"].map(|text| Pattern::parse(text).expect("a pattern")).to_vec();
        let reach = Reach { tools: Tools::new(allow, Vec::new()).expect("few"), scopes: None };
        let told = message(before.as_bytes(), &reach, caches).expect("usable");
        assert_eq!(told.map(|told| String::from_utf8(told).expect("text")).as_deref(), after, "{before}");
    }

    #[test]
    fn tools_that_may_not_be_called_are_left_out_and_all_else_stays() {
        check(
            r#"{"jsonrpc":"2.0", "id":1.0e2,"result":{ "tools": [{"name":"a", "n":1.00},{"name":"c"} , {"name":"b_1"}], "nextCursor":"x" }}"#,
            false,
            Some(
                r#"{"jsonrpc":"2.0", "id":1.0e2,"result":{ "tools": [{"name":"a", "n":1.00},{"name":"b_1"}], "nextCursor":"x" }}"#,
            ),
        );
        for (before, after) in [
            (r#"[{"name":"c"}]"#, "[]"),
            (r#"[{"name":7},{},7,null,{"name":"a"}]"#, r#"[{"name":"a"}]"#),
            (r#"[{"n\u0061me":"c"},{"name":"\u0061"}]"#, r#"[{"name":"\u0061"}]"#),
        ] {
            let text = |tools: &str| format!(r#"{{"id":1,"result":{{"tools":{tools},"tools":{tools}}}}}"#);
            check(&text(before), false, Some(&text(after)));
        }
    }

    #[test]
    fn an_answer_with_nothing_to_change_stays_as_it_is() {
        for text in [
            r#"{"id":1,"result":{"tools":[ {"name":"a"} , {"name":"b_"} ]}}"#,
            r#"{"id":1,"result":{"tools":7}}"#,
            r#"{"id":1,"error":{"code":1,"message":"x"}}"#,
            r#"{"method":"notifications/progress","params":{"tools":[{"name":"c"}]}}"#,
            "",
            "[]",
        ] {
            check(text, false, None);
        }
    }

    #[test]
    fn what_may_be_kept_is_for_nobody_else() {
        check(
            r#"{"id":1,"result":{"tools":[{"name":"a"}],"cacheScope":"public"}}"#,
            true,
            Some(r#"{"id":1,"result":{"tools":[{"name":"a"}],"cacheScope":"private"}}"#),
        );
    }
}
