//! The list of tools, from the data file beside this one.

use std::time::Duration;

use kit::Tenant;
use kit::worker::{Catalogue, CatalogueError, Sharing};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Audience, Bounds, words};

/// In their order.
pub const NAMES: [&str; 8] =
    ["open_session", "exec", "job_exec", "job_poll", "job_cancel", "read_file", "write_file", "close_session"];

#[derive(Deserialize)]
struct File {
    instructions: String,
    tools: Value,
}

pub(super) fn build(audience: &Audience, bounds: &Bounds) -> Result<Catalogue, CatalogueError> {
    let mut file: File = serde_json::from_str(&filled(bounds))?;
    if let Audience::Local { default, known } = audience
        && let Some(schema) = file.tools.pointer_mut("/0/inputSchema").and_then(Value::as_object_mut)
    {
        let what = match default {
            Some(own) => format!("Whose sandbox to open. Default: {own}."),
            None => format!("Whose sandbox to open, one of: {}.", names(known)),
        };
        if default.is_none() {
            schema.insert("required".to_owned(), json!(["tenant"]));
        }
        if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert("tenant".to_owned(), json!({ "type": "string", "description": what }));
        }
    }
    Ok(Catalogue::new("playground-sandbox", env!("CARGO_PKG_VERSION"), file.tools)?
        .with_title("Playground sandbox")
        .with_instructions(file.instructions)
        .kept_for(FRESH, Sharing::Public))
}

/// The file with what is said of this service: none of the words put in needs escaping.
fn filled(bounds: &Bounds) -> String {
    let Bounds { limits, clocks } = bounds;
    [
        ("{os}", operating_system().to_owned()),
        ("{active}", limits.active_per_tenant.to_string()),
        ("{kept}", words::time(limits.kept)),
        ("{ring}", words::size(limits.output.bytes)),
        ("{handle_idle}", words::time(clocks.handle_idle)),
    ]
    .iter()
    .fold(include_str!("catalogue.json").to_owned(), |text, (place, word)| text.replace(place, word))
}

/// Tenants for a sentence, the first of them if there are many.
fn names(tenants: &[Tenant]) -> String {
    let mut names: Vec<&str> = tenants.iter().take(MOST_NAMED).map(Tenant::as_str).collect();
    if tenants.len() > MOST_NAMED {
        names.push("…");
    }
    names.join(", ")
}

fn operating_system() -> &'static str {
    match std::env::consts::OS {
        "freebsd" => "FreeBSD",
        // A Mac runs its sandboxes in a Linux machine.
        _ => "Linux",
    }
}

/// The catalogue changes with the program alone.
const FRESH: Duration = Duration::from_secs(3600);
const MOST_NAMED: usize = 16;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use kit::Tenant;
    use serde_json::Value;

    use super::{Audience, Bounds, build};
    use crate::jobs::table::Limits;
    use crate::settings::Clocks;

    fn tools(audience: Audience) -> Value {
        build(&audience, &bounds()).unwrap().as_json().unwrap()
    }

    fn bounds() -> Bounds {
        Bounds { limits: Limits::default(), clocks: Clocks::default() }
    }

    #[test]
    fn the_eight_tools_stand_in_their_order() {
        let tools = tools(Audience::Edge);
        let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, super::NAMES);
    }

    #[test]
    fn the_list_is_the_same_bytes_each_time_and_within_its_budget() {
        let first = tools(Audience::Edge).to_string();
        assert_eq!(first, tools(Audience::Edge).to_string());
        assert!(first.len() <= 10 << 10, "{}", first.len());
        for tool in tools(Audience::Edge).as_array().unwrap() {
            assert!(tool["description"].as_str().unwrap().len() <= 1024, "{}", tool["name"]);
            assert!(tool["annotations"]["title"].is_string() && tool["title"].is_string(), "{}", tool["name"]);
        }
        let catalogue = build(&Audience::Edge, &bounds()).unwrap();
        assert!((400..=700).contains(&catalogue.instructions().unwrap().len()));
    }

    #[test]
    fn commands_alone_may_reach_the_open_world() {
        for tool in tools(Audience::Edge).as_array().unwrap() {
            let open = ["exec", "job_exec"].contains(&tool["name"].as_str().unwrap());
            assert_eq!(tool["annotations"]["openWorldHint"], open, "{}", tool["name"]);
        }
    }

    #[test]
    fn a_tenant_is_offered_at_this_machine_alone() {
        let property = "/0/inputSchema/properties/tenant";
        assert!(tools(Audience::Edge).pointer(property).is_none());
        let tenants = |names: &[&str]| names.iter().map(|name| Tenant::parse(name).unwrap()).collect::<Vec<_>>();
        let own = tools(Audience::Local { default: tenants(&["a"]).pop(), known: Vec::new() });
        assert_eq!(own.pointer(property).unwrap()["description"], "Whose sandbox to open. Default: a.");
        assert!(own.pointer("/0/inputSchema/required").is_none());
        let several = tools(Audience::Local { default: None, known: tenants(&["a", "b"]) });
        assert_eq!(several.pointer(property).unwrap()["description"], "Whose sandbox to open, one of: a, b.");
        assert_eq!(several.pointer("/0/inputSchema/required").unwrap()[0], "tenant");
    }

    #[test]
    fn the_texts_say_the_numbers_of_this_service() {
        let limits = Limits { active_per_tenant: 3, kept: Duration::from_secs(120), ..Limits::default() };
        let clocks = Clocks { handle_idle: Duration::from_secs(300), ..Clocks::default() };
        let catalogue = build(&Audience::Edge, &Bounds { limits, clocks }).unwrap();
        let text = catalogue.as_json().unwrap().to_string();
        for said in ["At most 3 ", "5 minutes without use", "2 minutes after", "4 MiB"] {
            assert!(text.contains(said), "{said}: {text}");
        }
        for left in ["{os}", "{active}", "{kept}", "{ring}", "{handle_idle}"] {
            assert!(!text.contains(left) && !catalogue.instructions().unwrap().contains(left), "{left}");
        }
    }
}
