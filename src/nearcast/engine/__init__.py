"""What a user asks for: `Matcher` for boolean subscriptions; moving and ranked ones follow the same shape.

An engine validates what comes in (`reading_*`), turns it into columns, lets an index find candidates, settles what the
index cannot (`verify`), and hands deliveries out in the form the input had: objects for objects, tables for tables.
"""
