"""What we remember: records, SQL, migrations, leases. The only floor that knows SQL."""
