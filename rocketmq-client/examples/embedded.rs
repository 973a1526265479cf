//! Starts a broker in this process, sends to it, and reads back what it has stored.

use std::{error::Error, time::Duration};

use rocketmq_client::{EmbeddedBroker, Message, Producer};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let broker = EmbeddedBroker::builder().topic("orders", 2).start().await?;

    let producer = Producer::builder("shop").namesrv(broker.namesrv().as_str()).build()?;
    for fruit in ["apple", "pear", "plum"] {
        let receipt = producer.send(Message::new("orders", fruit).with_tag("fruit")).await?;
        println!("sent {fruit} to {}", receipt.queue());
    }
    producer.shutdown(Duration::from_secs(3)).await;

    for message in broker.stored("orders") {
        println!("stored in {}: {}", message.queue, String::from_utf8_lossy(&message.body));
    }
    broker.close().await;
    Ok(())
}
