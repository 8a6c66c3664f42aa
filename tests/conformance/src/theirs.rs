//! Real Helm's answer to a case, through the driver.

use serde_json::{Value, json};
use test_support::driver::{Driver, DriverError, encode};

use crate::cases::{Case, Named, Outcome};

fn named(list: &[Named]) -> Value {
    list.iter().map(|each| json!({"name": each.name, "text": encode(&each.text)})).collect()
}

/// Renders a case with Helm's engine.
///
/// # Errors
/// When the driver gives no answer.
pub fn render_expression(driver: &Driver, case: &Case) -> Result<Outcome, DriverError> {
    let answer = driver.call(
        "expr",
        json!({
            "template": encode(&case.template),
            "values": encode(&case.values),
            "partials": named(&case.partials),
            "files": named(&case.files),
            "strict": case.strict,
            "lint": case.lint,
            "enable_dns": case.dns,
            "release": {"is_upgrade": case.upgrade},
        }),
    )?;
    Ok(match answer.result() {
        Ok(output) => Outcome::Output(output),
        Err(error) => Outcome::Error(error),
    })
}
