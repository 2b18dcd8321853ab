//! What the worker lists, as data.

use std::sync::LazyLock;

use rmcp::ErrorData;
use rmcp::model::{Prompt, Resource, ResourceTemplate, Tool};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Catalogue {
    pub(crate) tools: Vec<Tool>,
    pub(crate) prompts: Vec<Prompt>,
    pub(crate) resources: Vec<Resource>,
    pub(crate) resource_templates: Vec<ResourceTemplate>,
}

pub(crate) static CATALOGUE: LazyLock<Catalogue> =
    LazyLock::new(|| serde_json::from_str(include_str!("catalogue.json")).expect("the tests below read this file"));

/// A message of the protocol from its text, which is shorter to read than its builders.
pub(crate) fn shaped<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|fault| ErrorData::internal_error(fault.to_string(), None))
}

/// One red pixel.
pub(crate) const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==";

/// A sound of no samples.
pub(crate) const WAV: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=";

#[cfg(test)]
mod tests {
    use super::CATALOGUE;

    #[test]
    fn the_catalogue_can_be_read() {
        assert!(CATALOGUE.tools.iter().all(|tool| tool.description.is_some()));
        assert_eq!(CATALOGUE.prompts.len(), 5);
        assert_eq!(CATALOGUE.resources.len(), 3);
        assert_eq!(CATALOGUE.resource_templates.len(), 1);
    }
}
