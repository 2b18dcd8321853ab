//! What this edge speaks TLS with, and until when.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::Fault;
use crate::app::words::{BeginEdge, Pem};
use crate::edge::tls::{Automatic, ClientAuthorities, Identities, Identity};

/// Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Certificates {
    /// The one that an authority gives by itself, where one is asked.
    pub(super) automatic: Option<Automatic>,
    /// When each of the operator's ends, since the Unix epoch.
    ends: Arc<Mutex<Vec<(String, Duration)>>>,
}

impl Certificates {
    pub(super) fn new(begin: &BeginEdge) -> Self {
        Self { automatic: begin.acme.is_some().then(Automatic::default), ends: Arc::default() }
    }

    /// All of them, or none where no TLS is spoken.
    pub(super) fn identities(&self, begin: &BeginEdge) -> Result<Option<Identities>, Fault> {
        if begin.tls.is_empty() && self.automatic.is_none() {
            return Ok(None);
        }
        let one = |pem: &Pem| Identity::from_pem(pem.certificates.as_bytes(), pem.key.expose().as_bytes());
        let identities = begin.tls.iter().map(one).collect::<Result<Vec<_>, _>>()?;
        let named = begin.tls.iter().zip(&identities);
        let ends = named.filter_map(|(pem, identity)| Some((pem.name.clone(), identity.validity()?.1))).collect();
        *self.ends.lock().unwrap_or_else(PoisonError::into_inner) = ends;
        let clients = begin.client_ca.as_ref().map(|pem| ClientAuthorities::from_pem(pem.as_bytes())).transpose()?;
        Ok(Some(Identities::with(identities, self.automatic.clone(), clients)?))
    }
}

impl Collector for Certificates {
    fn encode(&self, mut to: DescriptorEncoder<'_>) -> fmt::Result {
        let mut ends = self.ends.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let issued = self.automatic.as_ref().and_then(Automatic::validity);
        ends.extend(issued.map(|(_, until)| ("acme".to_owned(), until)));
        if !ends.is_empty() {
            let help = "When a certificate of this edge ends, in seconds since the Unix epoch.";
            let name = "playground_certificate_expiry_timestamp_seconds";
            let mut family = to.encode_descriptor(name, help, None, MetricType::Gauge)?;
            for (name, until) in ends {
                let labels = [("certificate", name)];
                ConstGauge::new(until.as_secs_f64()).encode(family.encode_family(&labels)?)?;
            }
        }
        if let Some(automatic) = &self.automatic {
            let help = "Failures in a row to get a certificate from the ACME authority.";
            let gauge = to.encode_descriptor("playground_acme_failures", help, None, MetricType::Gauge)?;
            ConstGauge::new(f64::from(automatic.failures())).encode(gauge)?;
        }
        Ok(())
    }
}
