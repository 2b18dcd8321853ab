//! A tenant's files take up no more than they may.

use sandbox::backend::{DiskQuota, UidMap};

use super::{Pair, broken};
use crate::admin::words::Check;

pub(super) const QUOTA: &str = "prove-disk-quota";

pub(super) async fn tried(pair: Pair<'_>) -> Check {
    match attempted(pair).await {
        Ok(proof) => proof,
        Err(why) => broken(QUOTA, why),
    }
}

async fn attempted(pair: Pair<'_>) -> Result<Check, String> {
    let record = pair.sandbox.record(pair.one).await.map_err(|fault| kit::chain(&fault))?;
    if record.disk_quota != DiskQuota::Hard {
        return Ok(Check::not_tried(QUOTA, "the bound of files is counted here, and the kernel does not hold it"));
    }
    let usage = pair.sandbox.usage(pair.one).await.map_err(|fault| kit::chain(&fault))?;
    if pair.sandbox.assurances().uid_map == UidMap::Machine {
        let why = "a machine's files are bounded by its disk, which is more than is written for a try";
        return Ok(Check::not_tried(QUOTA, why));
    }
    let Some(bound) = usage.disk.bound.or(record.profile.limits.disk) else {
        return Ok(broken(QUOTA, "nothing says how much a tenant's files may take up"));
    };
    if bound > MOST_TRIED {
        return Ok(Check::not_tried(QUOTA, format!("the bound of {bound} bytes is more than is written for a try")));
    }
    let files = bound / FILE + 4;
    let script = format!(
        "cd \"${{HOME:-/tmp}}\"; i=0
         while [ $i -lt {files} ]; do dd if=/dev/zero of=doctor.fill.$i bs={FILE} count=1 > /dev/null 2>&1 || break; i=$((i+1)); done
         echo $i; cat doctor.fill.* | wc -c; rm -f doctor.fill.*; echo again > doctor.again && echo writable; rm -f doctor.again"
    );
    let told = pair.output(&script).await?;
    let mut numbers = told.lines().filter_map(|line| line.trim().parse::<u64>().ok());
    Ok(match (numbers.next(), numbers.next()) {
        (Some(whole), Some(bytes)) if whole < files && bytes <= bound && told.contains("writable") => {
            Check::pass(QUOTA, format!("no more than {bytes} bytes could be written; {bound} are allowed"))
        }
        (Some(_), Some(bytes)) => broken(QUOTA, format!("{bytes} bytes were written, of {bound} allowed")),
        _ => broken(QUOTA, "the attempt was cut short"),
    })
}

/// Smaller than the least bound of one file.
const FILE: u64 = 1 << 20;

const MOST_TRIED: u64 = 256 << 20;
