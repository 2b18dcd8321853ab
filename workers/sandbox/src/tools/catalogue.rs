//! The list of tools, from the data file beside this one.

use std::time::Duration;

use kit::worker::{Catalogue, CatalogueError, Sharing};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Audience;

#[derive(Deserialize)]
struct File {
    instructions: String,
    tools: Value,
}

pub(super) fn build(audience: &Audience) -> Result<Catalogue, CatalogueError> {
    let mut file: File = serde_json::from_str(include_str!("catalogue.json"))?;
    if let Audience::Local(own) = audience
        && let Some(properties) = file.tools.pointer_mut("/0/inputSchema/properties").and_then(Value::as_object_mut)
    {
        let what = format!("Whose sandbox to open. Default: {own}.");
        properties.insert("tenant".to_owned(), json!({ "type": "string", "description": what }));
    }
    let instructions = file.instructions.replace("{os}", operating_system());
    Ok(Catalogue::new("playground-sandbox", env!("CARGO_PKG_VERSION"), file.tools)?
        .with_title("Playground sandbox")
        .with_instructions(instructions)
        .kept_for(FRESH, Sharing::Public))
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

#[cfg(test)]
mod tests {
    use kit::Tenant;
    use serde_json::Value;

    use super::{Audience, build};

    fn tools(audience: Audience) -> Value {
        build(&audience).unwrap().as_json().unwrap()
    }

    #[test]
    fn the_eight_tools_stand_in_their_order() {
        let tools = tools(Audience::Edge);
        let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        let order =
            ["open_session", "exec", "job_exec", "job_poll", "job_cancel", "read_file", "write_file", "close_session"];
        assert_eq!(names, order);
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
        let catalogue = build(&Audience::Edge).unwrap();
        assert!((400..=700).contains(&catalogue.instructions().unwrap().len()));
    }

    #[test]
    fn a_tenant_is_offered_at_this_machine_alone() {
        let property = "/0/inputSchema/properties/tenant";
        assert!(tools(Audience::Edge).pointer(property).is_none());
        assert!(tools(Audience::Local(Tenant::parse("a").unwrap())).pointer(property).is_some());
    }
}
