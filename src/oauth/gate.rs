//! How often somebody may try what nobody should have to try often.

use std::net::IpAddr;
use std::time::Duration;

use super::settings::Guesses;
use super::state::ClientId;
use crate::buckets::Buckets;

/// Tries of invite codes, by address, by client and in all; and registrations, by address and in all.
///
/// A try is charged to its address whether or not it succeeds, and a wrong one to its client and to all: strangers who
/// guess must not keep out whoever has a code.
pub(super) struct Gate {
    addresses: Buckets<IpAddr>,
    clients: Buckets<ClientId>,
    all: Buckets<()>,
    registering: Buckets<IpAddr>,
    registrations: Buckets<()>,
}

/// Too many tries; one more is free in so long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooMany {
    pub(super) again: Duration,
}

impl Gate {
    pub(super) fn new(guesses: &Guesses) -> Self {
        let most = guesses.most_remembered;
        Self {
            addresses: Buckets::new(guesses.address_pause, guesses.per_address, most),
            clients: Buckets::new(guesses.client_pause, guesses.per_client, most),
            all: Buckets::new(guesses.all_pause, guesses.in_all, 1),
            registering: Buckets::new(guesses.address_pause, guesses.per_address, most),
            registrations: Buckets::new(guesses.registration_pause, guesses.registrations, 1),
        }
    }

    /// Charges a try of an invite code; a wrong one to this client too. The narrowest bound comes first, so that who is
    /// over it costs the others nothing.
    pub(super) fn guess(&self, from: Option<IpAddr>, wrong: Option<&ClientId>) -> Result<(), TooMany> {
        from.map_or(Ok(()), |from| self.addresses.take(network(from)))?;
        let Some(client) = wrong else { return Ok(()) };
        self.clients.take(client.clone()).map_err(TooMany::from)?;
        self.all.take(()).map_err(TooMany::from)
    }

    /// Charges a registration.
    pub(super) fn registration(&self, from: Option<IpAddr>) -> Result<(), TooMany> {
        from.map_or(Ok(()), |from| self.registering.take(network(from)))?;
        self.registrations.take(()).map_err(TooMany::from)
    }
}

/// One customer has all of an IPv6 /64.
pub(super) fn network(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_none() => IpAddr::V6((v6.to_bits() & (u128::MAX << 64)).into()),
        IpAddr::V4(_) | IpAddr::V6(_) => address.to_canonical(),
    }
}

impl From<crate::buckets::Empty> for TooMany {
    fn from(empty: crate::buckets::Empty) -> Self {
        Self { again: empty.again }
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;
    use std::time::Duration;

    use super::Gate;
    use crate::oauth::Guesses;
    use crate::oauth::state::ClientId;

    const HOUR: Duration = Duration::from_secs(3600);

    fn gate(per_address: u32, per_client: u32, in_all: u32) -> Gate {
        Gate::new(&Guesses {
            per_address,
            per_client,
            in_all,
            registrations: 50,
            registration_pause: HOUR,
            address_pause: HOUR,
            client_pause: HOUR,
            all_pause: HOUR,
            most_remembered: 8,
        })
    }

    /// How many of so many tries pass, each from an address and for a client of its own where that is said.
    fn passed(gate: &Gate, tries: u8, (addresses, clients): (bool, bool)) -> usize {
        let from = |try_: u8| IpAddr::from([10, 0, 0, if addresses { try_ } else { 0 }]);
        let client = |try_: u8| ClientId::parse(&format!("client-{}", if clients { try_ } else { 0 })).expect("an id");
        (0..tries).filter(|try_| gate.guess(Some(from(*try_)), Some(&client(*try_))).is_ok()).count()
    }

    #[test]
    fn one_address_has_its_tries_and_no_more() {
        assert_eq!(passed(&gate(3, 100, 100), 3, (false, true)), 3);
        assert_eq!(passed(&gate(3, 100, 100), 4, (false, true)), 3);
    }

    #[test]
    fn one_client_has_its_tries_from_all_addresses_together() {
        assert_eq!(passed(&gate(100, 3, 100), 3, (true, false)), 3);
        assert_eq!(passed(&gate(100, 3, 100), 4, (true, false)), 3);
    }

    #[test]
    fn all_have_their_tries_together() {
        assert_eq!(passed(&gate(100, 100, 3), 3, (true, true)), 3);
        assert_eq!(passed(&gate(100, 100, 3), 4, (true, true)), 3);
    }

    #[test]
    fn who_has_a_code_gets_in_beside_those_who_guess() {
        let gate = gate(3, 2, 2);
        assert_eq!(passed(&gate, 5, (true, false)), 2, "the guesses of all are used up");
        let own = |last: u8| Some(IpAddr::from([10, 0, 1, last]));
        assert!((0..2).all(|last| gate.guess(own(last), None).is_ok()), "from addresses of their own");
        assert_eq!((0..4).filter(|_| gate.guess(own(99), None).is_ok()).count(), 3, "each in its own bound");
    }

    #[test]
    fn an_address_that_many_share_is_counted_for_nobody() {
        let (gate, id) = (gate(1, 3, 100), ClientId::parse("client").expect("an id"));
        assert_eq!((0..4).filter(|_| gate.guess(None, Some(&id)).is_ok()).count(), 3, "the client's own bound stands");
        assert!((0..50).all(|_| gate.registration(None).is_ok()));
        assert!(gate.registration(None).is_err(), "all together have theirs");
    }

    #[test]
    fn what_one_address_has_too_much_is_not_charged_to_the_others() {
        let gate = gate(1, 100, 2);
        assert_eq!(passed(&gate, 50, (false, true)), 1);
        let other = IpAddr::from([10, 0, 0, 9]);
        assert!(gate.guess(Some(other), Some(&ClientId::parse("client").expect("an id"))).is_ok());
    }

    #[test]
    fn strangers_beyond_the_table_share_one_allowance() {
        let gate = gate(1, 100, 100);
        // Eight are remembered, and one more passes for all of the others.
        assert_eq!(passed(&gate, 50, (true, true)), 9);
        assert_eq!(gate.addresses.len(), 8);
    }

    #[test]
    fn an_ipv6_customer_is_one_address_and_registering_is_counted_by_itself() {
        let gate = gate(1, 100, 100);
        let (one, other): (IpAddr, IpAddr) =
            ("2001:db8::1".parse().expect("an address"), "2001:db8::2".parse().expect("an address"));
        assert!(gate.registration(Some(one)).is_ok());
        assert!(gate.registration(Some(other)).is_err());
        let id = ClientId::parse("client").expect("an id");
        assert!(gate.guess(Some(one), Some(&id)).is_ok() && gate.guess(Some(other), Some(&id)).is_err());
    }
}
