//! A future that is dropped: the same end as a deadline in the same stage.
